/* The entry that the enclave loads. It has everything a verifier needs. */

export { type TcbStatus, tcbStatuses } from '@countersign/protocol/core'
export {
  type CodeRegister,
  codeEvents,
  codeRegisters,
  findOpenEvents,
  findOpenRegisters,
  findPlatform,
  isTdPlatform,
  readSnpMeasurement,
  type SnpMeasurement,
  type TdMeasurement,
  type TdPlatform,
  toTdMeasurement,
} from './codeRegisters.ts'
export {
  type CreateVerifierParameters,
  createVerifier,
  type Verifier,
  type VerifyQuoteParameters,
  type VerifyReportParameters,
  type VerifyRevocationsParameters,
} from './createVerifier.ts'
export { type Difference, PolicyError, type PolicyErrorCode, QuoteError, type QuoteErrorCode } from './errors.ts'
export {
  assertLaunch,
  assertQuotePolicy,
  assertReportChip,
  assertReportPolicy,
  assertReportState,
  isMeasuredAs,
  type QuotePolicy,
  quotePolicyMembers,
  type ReportPolicy,
} from './policy.ts'
export { arkGenoa, arkMilan, arkTurin, intelSgxRootCa, type TrustedRoot, vendorRoots } from './roots.ts'
export {
  parseSnpTcb,
  type SnpProduct,
  type SnpTcb,
  snpProducts,
  snpTcbParts,
  toSnpProduct,
} from './snp/endorsementKey.ts'
export { type ParsedReport, parseReport, SNP_REPORT_BYTES } from './snp/parseReport.ts'
export type { VerifiedRevocations } from './snp/verifyReport.ts'
export { type ReportFlags, readReportFlags, type SnpCertificates, type VerifiedReport } from './snp/verifyReport.ts'
export { assertCollateral, type Collateral, parseCollateral } from './tdx/collateral.ts'
export type { RuntimeEvents } from './tdx/eventLog.ts'
export {
  type ParsedQuote,
  parseQuote,
  type QeReport,
  readTdFlags,
  readTdxModule,
  type TdFlags,
  type TdReport,
  type TdxModuleVersion,
} from './tdx/parseQuote.ts'
export { type PckPlatform, parsePckPlatform } from './tdx/pckCertificate.ts'
export type { QuoteFlags, VerifiedQuote } from './tdx/verifyQuote.ts'
export { parsePem } from './x509/pem.ts'
export type { ValidityWindow } from './x509/verifyChain.ts'
