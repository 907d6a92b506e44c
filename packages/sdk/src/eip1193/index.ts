export { announceProvider, type Eip6963ProviderInfo } from './announceProvider.ts'
export { createEip1193Provider, type Eip1193ProviderOptions } from './createEip1193Provider.ts'
export { Eip1193Error } from './errors.ts'
export type { ConfirmRequest } from './sendTransaction.ts'
