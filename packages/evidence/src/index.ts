export type { EvidenceMode } from '@countersign/protocol'
export { parseCertTable, type SnpCertificates } from './certTable.ts'
export {
  type ConfigfsReportSourceParameters,
  type ConfigfsSourceParameters,
  createConfigfsQuoteSource,
  createConfigfsReportSource,
} from './configfs.ts'
export {
  createDstackQuoteSource,
  type DstackQuoteSourceParameters,
  type GetDstackKeyParameters,
  getDstackKey,
} from './dstack.ts'
export { EvidenceError, type EvidenceErrorCode } from './errors.ts'
export { VendorError, type VendorErrorCode } from './getBounded.ts'
export { createKdsClient, type KdsClient, type KdsClientDeps, readPemBundle } from './kds.ts'
export {
  createPcsClient,
  createPlatformReader,
  type PcsClient,
  type PcsClientDeps,
  type Platform,
  readPlatform,
} from './pcs.ts'
export type { Quote, QuoteSource, Report, ReportSource, Wait } from './ports.ts'
export {
  createSimulatedQuoteSource,
  createSimulatedReportSource,
  type QuoteSimulator,
  type ReportSimulator,
  type SimulatedQuoteSourceParameters,
  type SimulatedReportSourceParameters,
} from './simulated.ts'
export type { TsmFilesystem } from './tsmFilesystem.ts'
