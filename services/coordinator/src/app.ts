import type { EntropySetting } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import type { StaticFile } from '@countersign/service/staticFiles'
import type { DirectProvider, IdentityProvider } from './accounts/oidc.ts'
import type { SignerFinder } from './accounts/session.ts'
import { addOutcome } from './accounts/signIn.ts'
import { prefersHtml } from './http/accept.ts'
import { registerAuthRoutes } from './http/authRoutes.ts'
import { type CookieRules, toSessionCookieName } from './http/cookies.ts'
import { DOCS_CSP } from './http/docsPage.ts'
import { registerDocsRoutes } from './http/docsRoutes.ts'
import { registerExportRoutes } from './http/exportRoutes.ts'
import { registerGatewayRoutes } from './http/gatewayRoutes.ts'
import { createGuards } from './http/guards.ts'
import { registerHealthRoutes } from './http/healthRoutes.ts'
import { createLimiters, type RateLimits } from './http/limiters.ts'
import { registerLogRoutes } from './http/logRoutes.ts'
import { createOnError, type ProblemMetrics } from './http/problem.ts'
import { createProofEvents } from './http/proofEvents.ts'
import { registerProofRoutes } from './http/proofRoutes.ts'
import { createRequestHandler, type HandleRequest } from './http/requestHandler.ts'
import { createRouter, type Handlers } from './http/router.ts'
import { createRuledSign } from './http/ruledSign.ts'
import { createGetSignedIn } from './http/signedIn.ts'
import { isSignInPath, renderSignInPage } from './http/signInPage.ts'
import { registerSignRoutes } from './http/signRoutes.ts'
import { registerSpendRoutes } from './http/spendRoutes.ts'
import { registerVaultRoutes } from './http/vaultRoutes.ts'
import { registerWalletRoutes } from './http/walletRoutes.ts'
import type { LogService } from './log/logService.ts'
import type { ExportProofs } from './proofs/export/exportCar.ts'
import { createProofReader } from './proofs/proofReader.ts'
import { createProofWatcher } from './proofs/watchProof.ts'
import { withReceipts } from './proofs/withReceipts.ts'
import type { RebuildReceipt } from './publish/assembleReceipt.ts'
import type { GetBlock } from './publish/ipfs/pinner.ts'
import type { WarnOf } from './publish/webhook/warner.ts'
import type { SelfReport } from './sign/enclave/health/selfReport.ts'
import type { KeyEnclave } from './sign/enclave/keyEnclave.ts'
import type { Entropy } from './sign/entropy/readAhead.ts'
import type { SignJob, SignResult } from './sign/job.ts'
import type { LogStore } from './store/logs.ts'
import type { Store } from './store/openStore.ts'
import { type Clock, type Random, type Schedule, systemSchedule } from './system.ts'

export type AppConfig = {
  /** The public URL of this service. With `https`, cookies get `Secure` and `__Host-`, and responses get HSTS. */
  publicUrl: string
  /** Exact origins. Sign-in returns to the first by default, and its web app shows proofs. */
  allowedOrigins: readonly string[]
  cookieSameSite: 'none' | 'lax' | 'strict'
  sessionTtlMs: number
  sessionIdleMs: number
  /** Addresses and CIDR ranges of trusted proxies. If empty, the socket's address counts. */
  trustedProxies: readonly string[]
  rateLimits: RateLimits
  /** Undefined allows all chains. */
  allowedChainIds: readonly number[] | undefined
  /** The entropy sources that this service signs with, as enclaves and policies name them. */
  entropySources: readonly EntropySetting[]
  /** Whether the hardware is simulated. Every response then says so. */
  isMock?: boolean
  /** Whether to reject signatures that are valid on all chains. True in staging, which allows only test networks. */
  isChainRequired?: boolean
  /** New signatures per user in 24 hours. Undefined: no limit. */
  signQuotaPerDay?: number | undefined
  /** The gateway that `ipfsUrl` points to. Undefined: `ipfs://` URLs. */
  ipfsGatewayUrl?: string
  version?: string
}

export type AppDeps = {
  store: Store
  signers: SignerFinder
  enclave: Pick<KeyEnclave, 'openSession' | 'deriveVault'>
  entropy: Pick<Entropy, 'takeVerified'>
  selfReport: Pick<SelfReport, 'mode' | 'publicKey' | 'current' | 'sign'>
  /** By the id in `/auth/:provider`. */
  providers: ReadonlyMap<string, IdentityProvider | DirectProvider>
  sign(job: SignJob): Promise<SignResult>
  /** Present if the enclaves have logs. */
  logService?: Pick<LogService, 'findMissing' | 'isOpen' | 'findState'>
  /** Returns a block that this service stores, for the gateway. Undefined: no gateway. */
  getBlock?: GetBlock
  /** The keys that sign webhooks. Undefined until they are known. */
  getWebhookKeys(): readonly Uint8Array[] | undefined
  /** Sends a webhook when a vault refuses to sign. */
  warnOf: WarnOf
  /** Reads receipts that are no longer in the database. */
  rebuildReceipt: RebuildReceipt
  exportProofs: ExportProofs
  logStore: Pick<LogStore, 'listLogs' | 'findCosigned' | 'readTiles' | 'readBundle'>
  /** The built documentation site's files by path; undefined if it isn't built. */
  docsSite?: ReadonlyMap<string, StaticFile> | undefined
  clock: Clock
  random: Random
  log: Log
  metrics?: ProblemMetrics
  /** Default: the system's timers. */
  schedule?: Schedule
  config: AppConfig
}

export type App = {
  handleRequest: HandleRequest
  /** Ends the event streams and resolves when all requests have been answered. Rejects later requests with `shutting_down`. */
  stop(): Promise<void>
}

/** Creates the HTTP application. It does not listen yet. Routes are in the order of specification §4. */
export function createApp({ config, schedule = systemSchedule, ...deps }: AppDeps): App {
  const { store, clock, random, log, metrics } = deps
  const { allowedOrigins, sessionTtlMs, sessionIdleMs, allowedChainIds, entropySources, ipfsGatewayUrl } = config
  const publicUrl = config.publicUrl.replace(/\/+$/, '')
  const isHttps = publicUrl.startsWith('https:')
  const cookies: CookieRules = { isHttps, sameSite: config.cookieSameSite }
  const limiters = createLimiters({ rateLimits: config.rateLimits, clock })
  const getSignedIn = createGetSignedIn({ store, clock, sessionIdleMs, cookies })
  const proofs = withReceipts({ store, rebuild: deps.rebuildReceipt, log })
  const watcher = createProofWatcher({ store: proofs, ipfsGatewayUrl, schedule, log })
  const proofEvents = createProofEvents({ watcher, schedule })
  const { isMock = false, isChainRequired = false } = config
  const ownOrigin = new URL(publicUrl).origin
  const guards = createGuards({ config, isHttps, isMock, clock, random, log })
  const handlers: Handlers = new Map()
  const onError = createOnError({
    publicUrl,
    log,
    metrics,
    toPage(problem, c) {
      const { method, path } = c.req
      if ((method !== 'GET' && method !== 'HEAD') || !isSignInPath(path)) return undefined
      c.header('vary', 'Accept')
      if (!prefersHtml(c.req.header('accept'))) return undefined
      const returnTo = c.returnTo ?? allowedOrigins[0]
      const startUrl = returnTo && addOutcome(returnTo, 'failed')
      return { html: renderSignInPage(problem, { startUrl }), csp: DOCS_CSP }
    },
  })

  const shared = { ...deps, cookies, limiters, getSignedIn }
  handlers.set('GET /', (c) => c.redirect('/docs'))
  registerAuthRoutes(handlers, { ...shared, publicUrl, allowedOrigins, sessionTtlMs, sessionIdleMs })
  registerWalletRoutes(handlers, shared)
  const chains = { chainIds: allowedChainIds, isChainRequired }
  registerVaultRoutes(handlers, { ...shared, schedule, entropySources, chains })
  const ruledSign = createRuledSign({ ...deps, entropySources, signQuotaPerDay: config.signQuotaPerDay })
  const signing = { ...shared, ruledSign, allowedChainIds, isChainRequired }
  registerSignRoutes(handlers, signing)
  registerSpendRoutes(handlers, signing)
  const proofReader = createProofReader({ store: proofs, ipfsGatewayUrl })
  const [firstOrigin] = allowedOrigins
  const pageOrigin = firstOrigin === ownOrigin ? undefined : firstOrigin
  registerProofRoutes(handlers, { proofReader, proofEvents, limiters, pageOrigin })
  registerExportRoutes(handlers, { ...shared, schedule })
  registerGatewayRoutes(handlers, shared)
  registerLogRoutes(handlers, shared)
  registerHealthRoutes(handlers, shared)
  registerDocsRoutes(handlers, {
    publicUrl,
    version: config.version ?? '0.1.0',
    sessionCookie: toSessionCookieName(cookies),
    isMock,
    site: deps.docsSite,
  })

  const route = createRouter(handlers)
  return {
    handleRequest: createRequestHandler({ guards, origins: config, isMock, route, onError }),
    async stop() {
      proofEvents.stop()
      // The last bytes of the streams are written in this turn of the event loop. Connections must not close before.
      await guards.stop()
    },
  }
}
