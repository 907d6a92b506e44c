export * from './client/index.ts'
export { type UseAttestationOptions, type UseAttestationReturnType, useAttestation } from './react/useAttestation.ts'
export {
  type ServiceContextValue,
  ServiceProvider,
  type ServiceProviderProps,
  type UseWalletReturnType,
  useService,
  useWallet,
} from './react/useService.ts'
export {
  type UseSignMessageReturnType,
  type UseSignReturnType,
  type UseSignTypedDataReturnType,
  useSign,
  useSignMessage,
  useSignTypedData,
} from './react/useSign.ts'
