import { boundSession } from '@countersign/sdk/session'
import { createTestService, type TestService, type TestServiceOptions } from '@countersign/sdk/testing'
import { render } from 'vitest-browser-react'
import { App } from '../../src/App.tsx'
import type { WebConfig } from '../../src/config.ts'
import '../../src/styles/app.css'

export type OpenWalletOptions = TestServiceOptions & {
  path?: string
  config?: Partial<WebConfig>
  /** The mode in `/health/attestation`. */
  mode?: 'hardware' | 'mock'
  faucet?: (address: string) => Response
  /** `bound`: the session has a key of this browser. `cookie`, the default: the user chose a session without one. `none`: no choice yet. */
  session?: 'cookie' | 'bound' | 'none'
  /** Runs before the app starts. */
  prepare?: (service: TestService) => void | Promise<void>
  /** Overrides responses of the service. */
  intercept?: (url: string, pass: () => Promise<Response>, init?: RequestInit) => Promise<Response> | undefined
}

export const FAUCET_URL = 'https://faucet.test/faucet'

let end: (() => void) | undefined

/** Opens the whole app against an in-memory service. Call `closeWallet` at the end, also after a failure. */
export async function openWallet(options: OpenWalletOptions = {}) {
  const {
    path = '/',
    config,
    mode = 'hardware',
    session = 'cookie',
    faucet,
    prepare,
    intercept,
    ...serviceOptions
  } = options
  const service = createTestService(serviceOptions)
  const original = globalThis.fetch
  service.install()
  const installed = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    const answer = intercept?.(url, () => installed(input, init), init)
    if (answer) return answer
    if (url === `${service.config.apiBaseUrl}/health/attestation`) {
      const [fetchedAt, expiresAt] = [0, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString())
      return Response.json({ mode, fetchedAt, expiresAt })
    }
    if (url === FAUCET_URL && faucet) return faucet(JSON.parse(String(init?.body)).address)
    return installed(input, init)
  }
  end = () => {
    globalThis.fetch = original
    window.history.replaceState(null, '', origin)
  }
  const origin = window.location.href
  if (session === 'cookie') sessionStorage.setItem(`countersign:cookie:${service.config.apiBaseUrl}`, 'true')
  if (session === 'bound') service.signIn({ clientKey: await createClientKey(service) })
  await prepare?.(service)
  window.history.replaceState(null, '', path)
  const { apiBaseUrl, chainId, rpcUrl = '' } = service.config
  const open = () => render(<App config={{ apiBaseUrl, chainId, rpcUrl, ...config }} />)
  const screen = await open()
  /** Loads the page again, with only the browser's storage kept. */
  async function reload() {
    await screen.unmount()
    return open()
  }
  return { screen, service, reload }
}

/** The `client_key` of a sign-in. */
async function createClientKey({ config }: TestService): Promise<string> {
  const url = await boundSession().startLogin(config, `${config.apiBaseUrl}/auth`)
  return new URL(url).searchParams.get('client_key') ?? ''
}

export function closeWallet(): void {
  end?.()
  end = undefined
  sessionStorage.clear()
  localStorage.clear()
  delete document.documentElement.dataset.theme
}
