export {
  type CreateVerifierParameters,
  createVerifier,
  type Verifier,
  type VerifyQuoteParameters,
  type VerifyReportParameters,
} from './createVerifier.ts'
export { PolicyError, type PolicyErrorCode, QuoteError, type QuoteErrorCode } from './errors.ts'
export {
  assertQuotePolicy,
  assertReportPolicy,
  type QuotePolicy,
  type ReportPolicy,
  type TdMeasurement,
} from './policy.ts'
export { arkGenoa, arkMilan, arkTurin, intelSgxRootCa, type TrustedRoot, vendorRoots } from './roots.ts'
export type { SnpProduct, SnpTcb } from './snp/endorsementKey.ts'
export { type ParsedReport, parseReport } from './snp/parseReport.ts'
export type { ReportFlags, SnpCertificates, VerifiedReport } from './snp/verifyReport.ts'
export { assertCollateral, type Collateral, parseCollateral } from './tdx/collateral.ts'
export type { TcbStatus } from './tdx/evaluateTcb.ts'
export type { RuntimeEvents } from './tdx/eventLog.ts'
export { type ParsedQuote, parseQuote, type QeReport, type TdReport } from './tdx/parseQuote.ts'
export type { PckPlatform } from './tdx/pckCertificate.ts'
export type { TdFlags } from './tdx/tdFlags.ts'
export type { QuoteFlags, VerifiedQuote } from './tdx/verifyQuote.ts'
export { parsePem } from './x509/pem.ts'
export type { ValidityWindow } from './x509/verifyChain.ts'
