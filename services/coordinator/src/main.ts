import { runProgram } from '@countersign/service'
import { createLog } from './log.ts'

const log = createLog()

const about =
  'Serves the public API: sign-in, wallets, signing and proofs. Also publishes proofs, unless WORKER=off is set.'

await runProgram({ log }, { name: 'coordinator', about }, async (env) => {
  // Loaded after the arguments are parsed, because loading takes a second.
  const { startCoordinator } = await import('./start.ts')
  return startCoordinator(env, { log })
})
