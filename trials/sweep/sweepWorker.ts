import { parentPort, workerData } from 'node:worker_threads'
import { type SweepOptions, sweep } from './sweep.ts'
import { createTargets } from './targets.ts'

/** Which of the mutations of every target are this worker's. */
export type SweepWorkerData = { targets: readonly string[]; options: SweepOptions }

/* Makes the same evidence as every other worker, and says what came of each target as it ends. */
const { targets: names, options } = workerData as SweepWorkerData
const targets = await createTargets()
for (const name of names) {
  const target = targets.find((each) => each.name === name)
  if (target === undefined) throw new Error(`there is no target ${name}`)
  parentPort?.postMessage(await sweep(target, options))
}
