/* The entry point for the enclave: quotes, and Intel's collateral. Only the coordinator needs AMD reports. */

export type { EvidenceMode } from '@countersign/protocol'
export { type ConfigfsSourceParameters, createConfigfsQuoteSource } from './configfs.ts'
export {
  createDstackQuoteSource,
  type DstackQuoteSourceParameters,
  type GetDstackKeyParameters,
  getDstackKey,
} from './dstack.ts'
export { EvidenceError, type EvidenceErrorCode } from './errors.ts'
export { VendorError, type VendorErrorCode } from './getBounded.ts'
export {
  createPcsClient,
  createPlatformReader,
  type PcsClient,
  type PcsClientDeps,
  type Platform,
  readPlatform,
} from './pcs.ts'
export type { Quote, QuoteSource, Report, ReportSource, Wait } from './ports.ts'
export { createSimulatedQuoteSource, type QuoteSimulator, type SimulatedQuoteSourceParameters } from './simulated.ts'
export type { TsmFilesystem } from './tsmFilesystem.ts'
