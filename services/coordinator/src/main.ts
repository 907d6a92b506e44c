import { runProgram } from '@countersign/service'
import { createLog } from './log.ts'

const log = createLog()

const about =
  'Serves the public API: sign-in, wallets, signing and proofs. Without WORKER=off it publishes the proofs too.'

await runProgram({ log }, { name: 'coordinator', about }, async (env) => {
  // After the arguments are read: it takes a second to load.
  const { startCoordinator } = await import('./start.ts')
  return startCoordinator(env, { log })
})
