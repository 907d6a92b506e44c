import { allStarted, type Scope, startInScope } from '@countersign/testing/stack'
import type { BrowserContext } from 'playwright'
import { createPublicClient, createTestClient, http, parseEther } from 'viem'
import type { InlineConfig } from 'vite'
import { startContract } from '../contracts/startContract.ts'
import { startBackend } from '../services/coordinator/test/backend.ts'
import { openPages } from './openPages.ts'
import { startBrowser } from './startBrowser.ts'

/** Where an app finds the service, the chain, and its own client at the identity provider. */
export type AppConfig = { apiBaseUrl: string; chainId: number; rpcUrl: string; issuer: string; clientId: string }

type StartStackParameters = {
  executablePath: string
  /** The app under test, as vite serves it. */
  toViteConfig(config: AppConfig): InlineConfig
  /** Added to the coordinator's environment. */
  env?: Record<string, string>
  /** Added to the enclave's environment. */
  enclaveEnv?: Record<string, string>
  /** The app, on `crossSiteOrigin`, signs in at the identity provider itself. */
  isDirect?: boolean
}

/**
 * All that a user meets, on loopback: chain with contract, identity provider, satellite, enclave and coordinator (processes of
 * their own), the app, and a Chromium to see it with.
 */
export function startStack(parameters: StartStackParameters) {
  return startInScope((scope) => startParts(parameters, scope))
}

async function startParts(parameters: StartStackParameters, { add }: Scope) {
  const { executablePath, toViteConfig, env, enclaveEnv = {}, isDirect = false } = parameters
  const [{ chain, address: contract, env: chainEnv }, browser] = await allStarted([
    startContract().then((started) => {
      add(started.chain, ({ stop }) => stop())
      return started
    }),
    startBrowser(executablePath).then((started) => add(started, (each) => each.close())),
  ])
  const pages = add(await openPages(2), ({ stop }) => stop())
  const [port, foreignPort] = pages.ports
  /** On the service's site and allowed by it. */
  const origin = `http://localhost:${port}`
  /** On another site, allowed by the service. Its cookies are third-party cookies. */
  const crossSiteOrigin = `http://127.0.0.1:${port}`
  /** On the service's site but not allowed by it. */
  const foreignOrigin = `http://localhost:${foreignPort}`
  const backend = add(
    await startBackend({
      env: { ...chainEnv, ALLOWED_ORIGINS: `${origin},${crossSiteOrigin}`, ...env },
      enclaveEnv,
      isDirect,
      pageUrl: `${crossSiteOrigin}/`,
    }),
    ({ stop }) => stop(),
  )
  const { issuer, pageClientId: clientId } = backend.oidc
  const { chainId, url: rpcUrl } = chain
  await pages.serve(toViteConfig({ apiBaseUrl: backend.url, chainId, rpcUrl, issuer, clientId }))

  const transport = http(chain.url, { retryCount: 0 })
  const testClient = createTestClient({ mode: 'hardhat', transport })
  return {
    chain,
    contract,
    backend,
    origin,
    crossSiteOrigin,
    foreignOrigin,
    /** Reads the chain's current state. */
    chainClient: createPublicClient({ transport, cacheTime: 0 }),
    /** Changes the chain with its owner's privileges. */
    testClient,
    /** A new browser without cookies or storage. */
    openContext: (): Promise<BrowserContext> => browser.newContext(),
    fund: (address: `0x${string}`) => testClient.setBalance({ address, value: parseEther('10') }),
  }
}

export type Stack = Awaited<ReturnType<typeof startStack>>
