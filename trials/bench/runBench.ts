import { readFile, writeFile } from 'node:fs/promises'
import type { Outcome, TrialDeps } from '../trial.ts'
import { describeMachine, fillPage, fillSummary } from './page.ts'
import { type Report, type Suite, toBody } from './report.ts'
import { benchEnclave } from './suites/enclave.ts'
import { benchGrowth } from './suites/growth.ts'
import { benchLog } from './suites/log.ts'
import { benchMemory } from './suites/memory.ts'
import { benchPipeline } from './suites/pipeline.ts'
import { benchReads } from './suites/reads.ts'
import { benchRestart } from './suites/restart.ts'
import { benchSign } from './suites/sign.ts'
import { benchSignIn } from './suites/signIn.ts'
import { benchStartup } from './suites/startup.ts'
import { benchVaults } from './suites/vaults.ts'
import { benchVerification } from './suites/verification.ts'

const suites: Readonly<Record<string, Suite>> = {
  verification: benchVerification,
  startup: benchStartup,
  enclave: benchEnclave,
  sign: benchSign,
  vaults: benchVaults,
  log: benchLog,
  signin: benchSignIn,
  reads: benchReads,
  memory: benchMemory,
  pipeline: benchPipeline,
  restart: benchRestart,
  growth: benchGrowth,
}

type BenchOptions = {
  rounds: number
  json: string
  page: string
  summary: string
  quick: boolean
  fixtures: string
  against: string
  budget: boolean
}

/** Measures one suite after the other. The results of the others stand if one fails. */
export async function runBench({ say }: TrialDeps, options: BenchOptions, names: readonly string[]): Promise<Outcome> {
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
