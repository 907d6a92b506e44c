export { type Listening, listen } from '../listen.ts'
export type { StackAnchors } from './anchors.ts'
export { type Audit, audit, type ReceivedSignature, type SeenProof, type VerifyTransaction } from './audit.ts'
export { type CheckAnswer, createAccounts, createUser, type TestUser } from './createUser.ts'
export {
  APP_ORIGIN,
  type Environment,
  noRateLimits,
  toCoordinatorEnv,
  toEnclaveEnv,
  toPublisherEnv,
  toWebEnv,
  toWorkerEnv,
} from './environments.ts'
export { COMPILE_CACHE, mains, toPath } from './paths.ts'
export { readEvents } from './readEvents.ts'
export { allStarted, type Scope, startInScope, withScope } from './scope.ts'
export {
  describeEnd,
  type LogFields,
  parseLogLine,
  type Service,
  type ServiceEnd,
  type StartServiceParameters,
  startService,
} from './startService.ts'
export { areaUnderCurve, interquartileRange, median, percentile, standardErrorOfArea } from './statistics.ts'
export { createTx, toDigest } from './transactions.ts'
export { type ReadProof, waitForCompleteProofs, waitForProofs } from './waitForProofs.ts'
