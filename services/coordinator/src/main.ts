import { runProgram } from '@countersign/service'
import { createLog } from './log.ts'
import { startCoordinator } from './start.ts'

const log = createLog()

const about =
  'Serves the public API: sign-in, wallets, signing and proofs. Without WORKER=off it publishes the proofs too.'

await runProgram({ log }, { name: 'coordinator', about }, (env) => startCoordinator(env, { log }))
