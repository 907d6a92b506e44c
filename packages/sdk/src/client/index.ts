export {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  type Authorization,
  type Hex,
  type MessageContent,
  type Opening,
  type Problem,
  type ProofPayload,
  type ProofStatus,
  ServiceError,
  type SessionUser,
  type SignatureKind,
  type SignRequest,
  type SignResult,
  type TransactionSummary,
  type TxMetadata,
  type TypedData,
  type WalletInfo,
} from '@countersign/protocol'
export type { ServiceApi, TransactionPage } from './api.ts'
export type { ServiceClientConfig, SignedEvent } from './connection.ts'
export type { SdkErrorCode } from './errors.ts'
export type { SignAuthorizationRequest, SignMessageRequest, SignTypedDataRequest } from './parseOffChain.ts'
export type { Session } from './request.ts'
export { type LoginOptions, ServiceClient } from './ServiceClient.ts'
export type { SignAuthorizationResult, SignOffChainOptions } from './signOffChain.ts'
export type { SignOffChainResult } from './verifyOffChain.ts'
