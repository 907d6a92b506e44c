import type { Suite } from './report.ts'
import type { SuiteName } from './suiteNames.ts'
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

export const suites: Readonly<Record<SuiteName, Suite>> = {
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
