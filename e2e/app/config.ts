import type { ServiceClientConfig } from '@countersign/sdk/client'

const { VITE_API_BASE_URL, VITE_CHAIN_ID, VITE_RPC_URL } = import.meta.env

export const config: ServiceClientConfig & { rpcUrl: string } = {
  apiBaseUrl: VITE_API_BASE_URL,
  chainId: Number(VITE_CHAIN_ID),
  rpcUrl: VITE_RPC_URL,
}
