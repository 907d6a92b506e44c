import { writeFile } from 'node:fs/promises'
import { toTable } from '../table.ts'
import { count, flag, type Outcome, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { describeMachine } from './describeMachine.ts'
import { benchGrowth } from './growth.ts'
import { benchPipeline } from './pipeline.ts'
import { benchReads } from './reads.ts'
import { type Report, readConnections, type Suite, toReportTable } from './report.ts'
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
  rounds: count(3, 'rounds of four turns each', { most: 999 }),
  connections: { ...word('N,N', 'numbers of connections for signing (default 1,16,64,256)'), default: '1,16,64,256' },
  lanes: word('WORD', 'run only the signing lanes with this text in their names'),
  against: word('DIR', 'another checkout, ready to run, to compare with in sign and pipeline'),
  json: word('FILE', 'write the values of every turn and a description of the machine to a file'),
  quick: flag('small sizes for a trial run: the figures mean little'),
  fixtures: {
    ...word('DIR', 'folder of evidence to verify; simulated if missing'),
    default: '../shared/fixtures',
  },
}
type Options = Values<typeof options>

export const bench: Trial = {
  summary: 'Measures the service suite by suite and prints a table for each.',
  names: Object.keys(suites),
  options,
  example: 'sign --rounds 1 --against ../before',
  run: runBench,
}

/** Runs the suites one after the other. A failed suite doesn't affect the results of the others. */
export async function runBench({ say }: TrialDeps, options: Options, names: readonly string[]): Promise<Outcome> {
  const { rounds, json, quick, fixtures, against, lanes } = options
  const connections = readConnections(options.connections)
  const machine = await describeMachine(new Date())
  const reports: Report[] = []
  const faults: string[] = []
  for (const name of names) {
    const run = { rounds, isQuick: quick, fixtures, against: against || undefined, connections, lanes }
    say(`${name}: started`)
    try {
      reports.push(...(await (suites[name] as Suite)({ ...run, say: (text) => say(`${name}: ${text}`) })))
    } catch (error) {
      faults.push(`${name} failed: ${error instanceof Error ? error.stack : error}`)
    }
    if (json !== '') await writeFile(json, `${JSON.stringify({ machine, options, faults, reports }, null, 2)}\n`)
  }
  console.log(machine)
  for (const report of reports) console.log(`\n${report.setting}\n${toTable(toReportTable(report))}`)
  return { faults }
}
