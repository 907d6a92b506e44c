export { createShutdown, type Shutdown } from './createShutdown.ts'
export type { Log, LogLine } from './log.ts'
export {
  ConfigError,
  type Env,
  type Fault,
  findUnmeasured,
  readBoolean,
  readInteger,
  readList,
  readSecret,
  readUrl,
  refuseMisspelt,
} from './readEnv.ts'
export { type RunningService, type RunServiceDeps, runService } from './runService.ts'
