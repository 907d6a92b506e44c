export { MAX_COLLATERAL_BYTES } from '@countersign/receipt'
export { SUBJECT_TITLE, type VerifierStep } from './checkSubject.ts'
export { chooseReceipt } from './chooseReceipt.ts'
export { type Claim, compareClaims, findLies } from './compareClaims.ts'
export type { Conclusion } from './conclude.ts'
export type { ContentWords, Fact } from './contentWords.ts'
export type { Publication } from './createChain.ts'
export { describeContent, type ShownContent } from './describeContent.ts'
export { describeSigned, nameSigned } from './describeSigned.ts'
export { adviseOn, describeStep, isMockStep, isSimulated, type StepContext } from './describeStep.ts'
export {
  type AnchorSource,
  describeVerdict,
  type VerdictContext,
  type VerdictDescription,
} from './describeVerdict.ts'
export { describeError, type ReaderNeed, VerifierError, type VerifierErrorCode, withSource } from './errors.ts'
export { createFetchBytes, type FetchBytes, type FetchBytesParameters, type FetchDeps } from './fetchBytes.ts'
export { findApi } from './findApi.ts'
export { getProof } from './getProof.ts'
export { groupSteps, type StepGroup } from './groupSteps.ts'
export { isCar } from './isCar.ts'
export { isMissing } from './isMissing.ts'
export type { GivenFile } from './loadCollateral.ts'
export type { Phase, Subject } from './loadReceipt.ts'
export { MEASUREMENT_FORM, normaliseHex, parseMeasurementText, toMeasurementText } from './measurementText.ts'
export { MINIMUM_TCB_FORM, parseMinimumTcbTexts, toMinimumTcbTexts } from './minimumTcbText.ts'
export { describeReport, type ReportWords } from './monitor/describeReport.ts'
export type { MonitorMemory } from './monitor/judgeSteps.ts'
export {
  createLogsMemory,
  formatMonitorState,
  type LogsMemory,
  MAX_STATE_BYTES,
  parseMonitorState,
} from './monitor/log/logMemory.ts'
export { createLogTime, type LogTime } from './monitor/log/logTime.ts'
export type { MonitorDeps, MonitorRequest } from './monitor/monitorRequest.ts'
export { createMonitorMemory, monitorWallet } from './monitor/monitorWallet.ts'
export {
  type Finding,
  type FindingKind,
  findWorst,
  type LogReport,
  type MonitorConclusion,
  type MonitorReport,
  monitorVerdicts,
  type Severity,
} from './monitor/report.ts'
export { orderGateways } from './orderGateways.ts'
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
export { PLATFORM_FORM, parsePlatformText, toPlatformText } from './platformText.ts'
export { type NamedSubject, recogniseSubject } from './recogniseSubject.ts'
export { releaseManifest } from './releaseManifest.ts'
export { toPrintable, toPrintableJson } from './toPrintable.ts'
export { parseHttpUrl, toGatewayLink } from './toStatedGateway.ts'
export { trimWhiteSpace } from './trimWhiteSpace.ts'
export { type Outcome, type Progress, type VerifyDeps, type VerifyRequest, verify } from './verify.ts'
export { parseWitnessText, WITNESS_FORM } from './witnessText.ts'
