import type { EntropySetting } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import type { StaticFile } from '@countersign/service/staticFiles'
import type { IdentityProvider } from './accounts/oidc.ts'
import type { SignerFinder } from './accounts/session.ts'
import { toUnfinished } from './accounts/signIn.ts'
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
import { createGetSignedIn } from './http/signedIn.ts'
import { isSignInPath, renderSignInPage } from './http/signInPage.ts'
import { registerSignRoutes } from './http/signRoutes.ts'
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
  /** Where browsers reach this service. `https` decides about `Secure`, `__Host-` and HSTS. */
  publicUrl: string
  /** Exact origins. Sign-in returns to the first by default, and its page shows proofs to browsers. */
  allowedOrigins: readonly string[]
  cookieSameSite: 'none' | 'lax' | 'strict'
  sessionTtlMs: number
  sessionIdleMs: number
  /** Addresses and CIDR ranges of our own proxies; with none, the socket's address counts. */
  trustedProxies: readonly string[]
  rateLimits: RateLimits
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
  /** Whose samples it signs with, as enclaves and policies name them. */
  entropySources: readonly EntropySetting[]
  /** Whether the silicon is simulated: every answer says so. */
  isMock?: boolean
  /** Whether it refuses to sign for all chains at once: in staging, where only test networks are allowed. */
  isChainRequired?: boolean
  /** New signatures of a user in 24 hours. Unset: any. */
  signQuotaPerDay?: number | undefined
  /** Where `ipfsUrl` points; without it to `ipfs://`. */
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
  providers: ReadonlyMap<string, IdentityProvider>
  sign(job: SignJob): Promise<SignResult>
  /** Where enclaves have a log. */
  logService?: Pick<LogService, 'findMissing' | 'isOpen'>
  /** A block that this service holds, for the gateway; without it there is none. */
  getBlock?: GetBlock
  /** The keys that sign webhooks; undefined while they are not known. */
  getWebhookKeys(): readonly Uint8Array[] | undefined
  /** Has it told that a vault did not sign. */
  warnOf: WarnOf
  /** For receipts that left the database. */
  rebuildReceipt: RebuildReceipt
  exportProofs: ExportProofs
  logStore: Pick<LogStore, 'listLogs' | 'findCosigned' | 'readTiles' | 'readBundle'>
  /** The files of the documentation site by path, if it is built. */
  docsSite?: ReadonlyMap<string, StaticFile> | undefined
  clock: Clock
  random: Random
  log: Log
  metrics?: ProblemMetrics
  /** The system's timers, unless a test has its own. */
  schedule?: Schedule
  config: AppConfig
}

export type App = {
  handleRequest: HandleRequest
  /** Ends the streams, and resolves when all requests have been answered; later ones are refused with `shutting_down`. */
  stop(): Promise<void>
}

/** The HTTP interface: routes in the order of specification §4. It does not listen. */
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
      const startUrl = returnTo && toUnfinished(returnTo, 'failed')
      return { html: renderSignInPage(problem, { startUrl }), csp: DOCS_CSP }
    },
  })

  const shared = { ...deps, cookies, limiters, getSignedIn }
  handlers.set('GET /', (c) => c.redirect('/docs'))
  registerAuthRoutes(handlers, { ...shared, publicUrl, allowedOrigins, sessionTtlMs, sessionIdleMs })
  registerWalletRoutes(handlers, shared)
  const chains = { chainIds: allowedChainIds, isChainRequired }
  registerVaultRoutes(handlers, { ...shared, schedule, entropySources, chains })
  registerSignRoutes(handlers, {
    ...shared,
    allowedChainIds,
    isChainRequired,
    entropySources,
    signQuotaPerDay: config.signQuotaPerDay,
  })
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
      // The streams' last bytes are written in this turn; closing the connections next must not cut them.
      await guards.stop()
    },
  }
}
