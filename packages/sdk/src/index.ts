export {
  type AttestationReceiptV1,
  type AttestationReceiptV2,
  type Authorization,
  type Hex,
  type LoginOptions,
  type MessageContent,
  type Opening,
  type Problem,
  type ProofPayload,
  type ProofStatus,
  type SdkErrorCode,
  type ServiceApi,
  ServiceClient,
  type ServiceClientConfig,
  ServiceError,
  type SessionUser,
  type SignAuthorizationRequest,
  type SignAuthorizationResult,
  type SignatureKind,
  type SignedEvent,
  type SignMessageRequest,
  type SignOffChainOptions,
  type SignOffChainResult,
  type SignRequest,
  type SignResult,
  type SignTypedDataRequest,
  type TransactionPage,
  type TransactionSummary,
  type TxMetadata,
  type TypedData,
  type WalletInfo,
} from './client/index.ts'
export { ServiceProvider, type ServiceProviderProps } from './react/ServiceProvider.tsx'
export { type UseAttestationOptions, type UseAttestationReturnType, useAttestation } from './react/useAttestation.ts'
export { type ServiceContextValue, useService } from './react/useService.ts'
export { type UseSignReturnType, useSign } from './react/useSign.ts'
export { type UseSignMessageReturnType, useSignMessage } from './react/useSignMessage.ts'
export { type UseSignTypedDataReturnType, useSignTypedData } from './react/useSignTypedData.ts'
export { type UseWalletReturnType, useWallet } from './react/useWallet.ts'
