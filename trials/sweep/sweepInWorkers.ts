import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { SweepOptions, SweepResult } from './sweep.ts'
import type { SweepWorkerData } from './sweepWorker.ts'

/** Sweeps targets by name, their mutations shared out among workers; calls back with each target when all are done with it. */
export async function sweepInWorkers(parameters: {
  targets: readonly string[]
  options: Omit<SweepOptions, 'turn'>
  workers: number
  onResult(result: SweepResult): void
}): Promise<SweepResult[]> {
  const { targets, options, workers, onResult } = parameters
  const parts = new Map<string, SweepResult[]>(targets.map((name) => [name, []]))
  const ends = Array.from({ length: workers }, async (_, first) => {
    const workerData: SweepWorkerData = { targets, options: { ...options, turn: { first, of: workers } } }
    const worker = new Worker(new URL('./sweepWorker.ts', import.meta.url), { workerData, execArgv: ['-C', 'source'] })
    worker.on('message', (result: SweepResult) => {
      const found = parts.get(result.name) ?? []
      found.push(result)
      if (found.length === workers) onResult(toWhole(found))
    })
    // A worker that throws ends the sweep: `once` rejects with its error.
    await once(worker, 'exit')
  })
  await Promise.all(ends)
  return [...parts.values()].map(toWhole)
}

function toWhole(parts: readonly SweepResult[]): SweepResult {
  return {
    name: parts[0]?.name ?? '',
    tried: parts.reduce((sum, { tried }) => sum + tried, 0),
    accepted: parts.flatMap(({ accepted }) => accepted),
    crashed: parts.flatMap(({ crashed }) => crashed),
  }
}
