import { readFile, writeFile } from 'node:fs/promises'
import { count, flag, type Outcome, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { benchGrowth } from './growth.ts'
import { describeMachine, fillPage, fillSummary } from './page.ts'
import { benchPipeline } from './pipeline.ts'
import { benchReads } from './reads.ts'
import { type Report, type Suite, toBody } from './report.ts'
import { benchSign } from './sign.ts'
import { benchVerification } from './verification.ts'

const suites: Readonly<Record<string, Suite>> = {
  verification: benchVerification,
  sign: benchSign,
  reads: benchReads,
  pipeline: benchPipeline,
  growth: benchGrowth,
}

const options = {
  rounds: count(5, 'repeats in which all candidates take turns', { most: 999 }),
  json: word('FILE', 'writes the whole result, with what the machine is'),
  page: word('FILE', 'puts the reports of the suites that ran into a page, such as docs/performance.md'),
  summary: word('FILE', 'puts the main figures of that page into another, such as README.md'),
  quick: flag('small sizes, to try it out: the figures mean little'),
  fixtures: {
    ...word('DIR', 'evidence to measure on; simulated evidence if it is not there'),
    default: '../shared/fixtures',
  },
  against: word('DIR', 'another checkout, ready to run, whose service sign measures in turns with this one'),
  budget: flag('of sign, only the processor time of a signature, by process and thread'),
}
type Options = Values<typeof options>

export const bench: Trial = {
  summary: 'Measures the service, one suite after the other.',
  names: Object.keys(suites),
  options,
  example: 'sign --rounds 3 --json sign.json',
  run: runBench,
}

/** Measures one suite after the other. The results of the others stand if one fails. */
export async function runBench({ say }: TrialDeps, options: Options, names: readonly string[]): Promise<Outcome> {
  const { rounds, json, page, summary, quick, fixtures, against, budget } = options
  const machine = await describeMachine(new Date())
  console.log(`${machine}\n`)
  const reports: Report[] = []
  const faults: string[] = []
  for (const name of names) {
    const run = { rounds, isQuick: quick, fixtures, against: against || undefined, isBudget: budget }
    say(`${name}: started`)
    try {
      const suite = suites[name] as Suite
      for (const report of [await suite({ ...run, say: (text) => say(`${name}: ${text}`) })].flat()) {
        reports.push(report)
        console.log(`## ${report.title}\n\n${toBody(report)}`)
        if (page !== '') await edit(page, (text) => fillPage(text, report, machine))
      }
    } catch (error) {
      faults.push(`${name} failed: ${error instanceof Error ? error.stack : error}`)
    }
    if (json !== '') await writeFile(json, `${JSON.stringify({ machine, options, faults, reports }, null, 2)}\n`)
  }
  if (page !== '' && summary !== '') {
    const figures = await readFile(page, 'utf8')
    await edit(summary, (readme) => fillSummary(readme, figures))
  }
  return { faults }
}

async function edit(file: string, change: (text: string) => string) {
  await writeFile(file, change(await readFile(file, 'utf8')))
}
