import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { count, type Outcome, seed, selectNames, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import { type SweepOptions, type SweepResult, sweep } from './sweep.ts'
import { createTargets } from './targets.ts'

/** The targets of a worker, and its share of their mutations. */
type SweepWorkerData = { targets: readonly string[]; options: SweepOptions }

const options = {
  share: count(100, 'percentage of all mutations to try', { least: 0.001, most: 100, isWhole: false }),
  bits: count(1, 'bits to flip at each position', { most: 8 }),
  seed: seed('chooses the bits and the share'),
  target: word('NAME', 'sweep only the targets with this text in their names'),
  workers: count(Math.min(availableParallelism(), 64), 'number of threads', { most: 64 }),
}
type Options = Values<typeof options>

export const sweepTrial: Trial = {
  summary:
    'Changes simulated evidence one byte at a time, truncates and extends it. Checks that the default policy rejects every change.',
  options,
  example: '--share 1 --target quote',
  run: runSweep,
}

/** Sweeps targets by name, with their mutations divided among workers. */
export async function runSweep({ say }: Pick<TrialDeps, 'say'>, options: Options): Promise<Outcome> {
  const { share, bits: bitsPerByte, seed, workers } = options
  const names = (await createTargets()).map(({ name }) => name)
  const targets = selectNames(names, options.target)
  const parts = new Map<string, SweepResult[]>(targets.map((name) => [name, []]))
  const ends = Array.from({ length: workers }, async (_, first) => {
    const turn = { first, of: workers }
    const data: SweepWorkerData = { targets, options: { share: share / 100, seed, bitsPerByte, turn } }
    const worker = new Worker(import.meta.filename, { workerData: data, execArgv: ['-C', 'source'] })
    worker.on('message', (result: SweepResult) => {
      const found = parts.get(result.name) ?? []
      found.push(result)
      if (found.length === workers) say(`${result.name}: ${countTried(found)} tried`)
    })
    // `once` rejects if the worker throws, which ends the sweep.
    await once(worker, 'exit')
  })
  await Promise.all(ends)
  const results = [...parts.values()].flat()
  const describe = (how: 'accepted' | 'crashed') =>
    results.flatMap((result) => result[how].map((label) => `${result.name}: ${label} ${how}`))
  return { faults: [...describe('accepted'), ...describe('crashed')], figures: { tried: countTried(results) } }
}

const countTried = (results: readonly SweepResult[]) => results.reduce((sum, { tried }) => sum + tried, 0)

/** Creates the same evidence as the other workers and reports the result of each target. */
async function work({ targets: names, options }: SweepWorkerData) {
  const targets = await createTargets()
  for (const name of names) {
    const target = targets.find((each) => each.name === name)
    if (target === undefined) throw new Error(`no target named ${name}`)
    parentPort?.postMessage(await sweep(target, options))
  }
}

if (!isMainThread && isOfSweep(workerData)) await work(workerData)

/** False when Vitest or the tests of `--help` load this file in their own workers. */
function isOfSweep(data: unknown): data is SweepWorkerData {
  return typeof data === 'object' && data !== null && 'targets' in data && 'options' in data
}
