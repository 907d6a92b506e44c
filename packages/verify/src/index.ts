export { MAX_COLLATERAL_BYTES } from '@countersign/receipt'
export {
  LOG_CONTRACT_FORM,
  MEASUREMENT_FORM,
  MINIMUM_TCB_FORM,
  normaliseHex,
  PLATFORM_FORM,
  parseLogContractText,
  parseMeasurementText,
  parseMinimumTcbTexts,
  parsePlatformText,
  parseWitnessText,
  toLogContractTexts,
  toMeasurementText,
  toMinimumTcbTexts,
  toPlatformText,
  WITNESS_FORM,
} from './anchorTexts.ts'
export { type CheckedBudget, checkVaultBudget } from './checkVaultBudget.ts'
export { type Claim, compareClaims, findLies } from './compareClaims.ts'
export type { Publication } from './createChain.ts'
export { type ConfigLine, describeConfig, describeSettings } from './describeConfig.ts'
export { type ContentWords, describeContent, type Fact, type ShownContent } from './describeContent.ts'
export { describePhase } from './describePhase.ts'
export { describeOwner, describeSigned, nameSigned } from './describeSigned.ts'
export { adviseOn, describeStep, isMockStep, isSimulated, type StepContext } from './describeStep.ts'
export { type AnchorSource, describeVerdict, type VerdictContext, type VerdictDescription } from './describeVerdict.ts'
export { describeError, type ReaderNeed, VerifierError, type VerifierErrorCode, withSource } from './errors.ts'
export { createFetchBytes, type FetchBytes, type FetchBytesParameters, type FetchDeps } from './fetchBytes.ts'
export { findNewestLog } from './findNewestLog.ts'
export {
  type FindBlockDeps,
  findBlock,
  orderGateways,
  parseHttpUrl,
  toGatewayLink,
  trimWhiteSpace,
} from './getBlock.ts'
export { findApi, getProof } from './getProof.ts'
export type { GivenFile } from './loadParts.ts'
export { chooseReceipt, isCar, type Phase, type Subject } from './loadReceipt.ts'
export type { MonitorMemory } from './monitor/checkSteps.ts'
export type { Finding, FindingKind, Severity } from './monitor/findings.ts'
export {
  createLogsMemory,
  formatMonitorState,
  type LogsMemory,
  MAX_STATE_BYTES,
  parseMonitorState,
} from './monitor/log/logMemory.ts'
export { createLogTime, type LogTime, type MonitorDeps, type MonitorRequest } from './monitor/monitorLogs.ts'
export { createMonitorMemory, monitorWallet } from './monitor/monitorWallet.ts'
export {
  describeReport,
  findWorst,
  type LogReport,
  type MonitorConclusion,
  type MonitorReport,
  monitorVerdicts,
  type ReportWords,
} from './monitor/report.ts'
export {
  assertManifest,
  emptyManifest,
  findManifestFaults,
  MAX_MANIFEST_BYTES,
  type Manifest,
  type ManifestContract,
  type ManifestFault,
  parseManifest,
} from './parseManifest.ts'
export { type NamedSubject, recogniseSubject } from './recogniseSubject.ts'
export { ENCLAVE_VARIABLES, MAX_APP_COMPOSE_BYTES, readAppCompose } from './source/readAppCompose.ts'
export {
  CHECKPOINT_FILE,
  KEY_FILE,
  openReleaseLog,
  type ReadReleaseFile,
  type ReleaseLogFiles,
  readReleaseLog,
  toRecordName,
} from './source/releaseLog.ts'
export { formatReleaseRecord, type ReleaseRecord } from './source/releaseRecord.ts'
export { isSourceFailed, type SourceLink, type SourceTrace, traceSource } from './source/traceSource.ts'
export { groupSteps, isMissing, type StepGroup, SUBJECT_TITLE, type VerifierStep } from './steps.ts'
export { toPrintable, toPrintableJson } from './toPrintable.ts'
export type { Conclusion } from './verify.ts'
export { type Outcome, type Progress, type VerifyDeps, type VerifyRequest, verify } from './verify.ts'
