export {
  type AttestationReceiptV1,
  type Hex,
  type Problem,
  type ProofPayload,
  type ProofStatus,
  ServiceError,
  type SessionUser,
  type SignRequest,
  type SignResult,
  type TransactionPage,
  type TransactionSummary,
  type TxMetadata,
  type WalletInfo,
} from '@countersign/protocol'
export type { ServiceApi } from './api.ts'
export type { ServiceClientConfig } from './connection.ts'
export type { SdkErrorCode } from './errors.ts'
export { ServiceClient } from './ServiceClient.ts'
