export * from './client/index.ts'
export { ServiceProvider, type ServiceProviderProps } from './react/ServiceProvider.tsx'
export { type UseAttestationOptions, type UseAttestationReturnType, useAttestation } from './react/useAttestation.ts'
export { type ServiceContextValue, type UseWalletReturnType, useService, useWallet } from './react/useService.ts'
export { type UseSignReturnType, useSign } from './react/useSign.ts'
export {
  type UseSignMessageReturnType,
  type UseSignTypedDataReturnType,
  useSignMessage,
  useSignTypedData,
} from './react/useSignOffChain.ts'
