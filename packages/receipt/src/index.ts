export {
  type Anchor,
  type AnchorBlock,
  type AnchoredReceipt,
  type AnchorPart,
  anchorSchemas,
  createAnchor,
  MAX_ANCHOR_ENTRIES,
  MAX_PARTS_BYTES,
  parseAnchorBlock,
  readAnchor,
} from './anchor/anchorBlock.ts'
export { assertBlockSize, canonicalBytes, parseReceipt } from './canonicalCodec.ts'
export type { Anchors, LogContract } from './check/anchors.ts'
export type { ChainLog, ChainReader } from './check/chainReader.ts'
export type { GivenAnchor } from './check/checkAnchor.ts'
export {
  DEFAULT_MAXIMUM_EVENT_DELAY_S,
  type TimeBound,
  type TimePolicy,
} from './check/checkChain.ts'
export type { CoordinatorPolicy, GivenRevocations } from './check/checkCoordinator.ts'
export { DSTACK_SECRET, MAX_COLLATERAL_BYTES, type SignerPolicy } from './check/checkSigner.ts'
export {
  anchorSteps,
  isStepOf,
  requiredSteps,
  type Step,
  type StepId,
  type StepStatus,
  stepTitles,
  vaultSteps,
} from './check/steps.ts'
export {
  type CheckReceiptOptions,
  checkReceipt,
  parseAnyReceipt,
  type ReceiptCheck,
  type Verdict,
} from './checkReceipt.ts'
export { fromCidHash, isCid, toCid, toCidHash } from './cid.ts'
export { ReceiptError, type ReceiptErrorCode } from './errors.ts'
export { type AnyReceipt, nameSignature, type ReceiptView, type SignatureName } from './receiptView.ts'
export { assemble, type EvidenceMode, hashPart, type ReceiptRecords, toReceiptRelease } from './v1/assemble.ts'
export {
  type AttestationReceiptV1,
  MAX_RECEIPT_BYTES,
  RECEIPT_SPEC,
  RECEIPT_VERSION,
  receiptSchema,
  type SelfAttestation,
  type Witness,
} from './v1/schema.ts'
export {
  type AttestationRecords,
  assembleAttestation,
  assembleBatch,
  assembleCoordinator,
  assembleRelease,
  type ReleaseCids as Released,
  toBlockRelease,
} from './v2/assemble.ts'
export { ATTESTATION_V2, type Blocks, encodeBlock, type GivenBlocks, parseBlock } from './v2/blocks.ts'
export {
  CAR_HEADER_BYTES,
  encodeCar,
  encodeCarHeader,
  encodeCarSection,
  encodeReceiptCar,
  MAX_CAR_BYTES,
  measureCarSection,
  parseCar,
  parseCarHeader,
  parseCarSection,
  parseReceiptCar,
  type ReceiptFiles,
} from './v2/car.ts'
export type { LogInclusion as Logged } from './v2/checkLog.ts'
export { quantumNote } from './v2/readAttestation.ts'
export { blockSchemas } from './v2/schema.ts'
