export {
  type AttestationReceiptV1,
  type Hex,
  type Problem,
  type ProofPayload,
  type ProofStatus,
  type SdkErrorCode,
  type ServiceApi,
  ServiceClient,
  type ServiceClientConfig,
  ServiceError,
  type SessionUser,
  type SignRequest,
  type SignResult,
  type TransactionPage,
  type TransactionSummary,
  type TxMetadata,
  type WalletInfo,
} from './client/index.ts'
export { ServiceProvider, type ServiceProviderProps } from './react/ServiceProvider.tsx'
export { type UseAttestationReturnType, useAttestation } from './react/useAttestation.ts'
export { type ServiceContextValue, useService } from './react/useService.ts'
export { type UseSignReturnType, useSign } from './react/useSign.ts'
export { type UseWalletReturnType, useWallet } from './react/useWallet.ts'
