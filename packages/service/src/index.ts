export { createLog } from './createLog.ts'
export { createShutdown, type Shutdown } from './createShutdown.ts'
export type { Log, LogLine } from './log.ts'
export { type ParsedArguments, parseArguments } from './parseArguments.ts'
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
export { readSettings } from './readSettings.ts'
export { runProgram } from './runProgram.ts'
export { type RunningService, type RunServiceDeps, runService } from './runService.ts'
export { settingNames } from './settingNames.ts'
