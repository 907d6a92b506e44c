export { createLog } from './createLog.ts'
export { createShutdown, type Shutdown } from './createShutdown.ts'
export { closeServer, drainServer, trackAnswers } from './drainServer.ts'
export { assertWritable, createFolder, syncFolder, writeNewFile } from './durableFiles.ts'
export type { Log, LogLine } from './log.ts'
export { MOCK, MOCK_SENTENCE, SILICON_HEADER } from './mark.ts'
export { MAX_SESSION_S } from './maxSession.ts'
export { type ParsedArguments, parseArguments } from './parseArguments.ts'
export { readCauseCode, readCode } from './readCode.ts'
export {
  ConfigError,
  collectFaults,
  describeFault,
  type Env,
  type Fault,
  fileFix,
  findUnmeasured,
  PRODUCTION_FIX,
  readBoolean,
  readInteger,
  readList,
  readSecret,
  readUrl,
  refuseMisspelt,
  type SettingFault,
} from './readEnv.ts'
export { type Mode, readMode } from './readMode.ts'
export { readSettings } from './readSettings.ts'
export { runProgram } from './runProgram.ts'
export { type RunningService, type RunServiceDeps, runService } from './runService.ts'
export { settingNames } from './settingNames.ts'
export { refuseRealChains, testChainIds } from './testNetworks.ts'
export { createTrustedProxies, type TrustedProxies } from './trustedProxies.ts'
