import { join } from 'node:path'
import type { InlineConfig } from 'vite'
import type { AppConfig } from '../startStack.ts'

const APP = join(import.meta.dirname, '../app')

/** How vite builds the app in `app/`. Without `session`, its session is a cookie. */
export function toAppConfig({ apiBaseUrl, chainId, rpcUrl, issuer, clientId }: AppConfig, session = ''): InlineConfig {
  const env = {
    API_BASE_URL: apiBaseUrl,
    CHAIN_ID: String(chainId),
    RPC_URL: rpcUrl,
    SESSION: session,
    ISSUER: issuer,
    CLIENT_ID: clientId,
  }
  return {
    root: APP,
    build: {
      rolldownOptions: {
        input: ['index.html', 'wagmi.html', 'plain.html', 'vaults.html'].map((name) => join(APP, name)),
      },
    },
    define: Object.fromEntries(
      Object.entries(env).map(([name, value]) => [`import.meta.env.VITE_${name}`, JSON.stringify(value)]),
    ),
  }
}
