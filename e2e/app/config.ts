import type { ServiceClientConfig } from '@countersign/sdk/client'
import { directSession } from '@countersign/sdk/direct'
import { boundSession } from '@countersign/sdk/session'

const { VITE_API_BASE_URL, VITE_CHAIN_ID, VITE_RPC_URL, VITE_ISSUER, VITE_CLIENT_ID } = import.meta.env

/** By default, the session is a cookie, and the build leaves this code out. */
function createSession() {
  if (import.meta.env.VITE_SESSION === 'bound') return boundSession()
  if (import.meta.env.VITE_SESSION !== 'direct') return undefined
  return directSession({
    provider: 'page',
    issuer: VITE_ISSUER,
    clientId: VITE_CLIENT_ID,
    authorizationUrl: `${VITE_ISSUER}/auth`,
  })
}

export const config: ServiceClientConfig & { rpcUrl: string } = {
  apiBaseUrl: VITE_API_BASE_URL,
  chainId: Number(VITE_CHAIN_ID),
  rpcUrl: VITE_RPC_URL,
  session: createSession(),
}
