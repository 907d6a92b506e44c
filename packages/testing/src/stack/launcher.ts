export { removePostgres, startPostgres } from '../postgres.ts'
export {
  APP_ORIGIN,
  type EnclaveLogSettings,
  type Environment,
  LOG_ORIGINS,
  noRateLimits,
  PAGE_CLIENT_ID,
  toCoordinatorEnv,
  toEnclaveEnv,
  toPublisherEnv,
  toWebEnv,
  toWorkerEnv,
} from './environments.ts'
export { COMPILE_CACHE, mains, toPath } from './paths.ts'
export {
  describeEnd,
  type LogFields,
  parseLogLine,
  type Service,
  type ServiceEnd,
  type StartServiceParameters,
  startService,
} from './startService.ts'
export {
  createWitnessFolders,
  type RunningWitness,
  readLogKeys,
  startWitness,
  type WitnessFolder,
  writeLogList,
} from './witnesses.ts'
