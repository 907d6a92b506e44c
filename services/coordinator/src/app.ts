import { OpenAPIHono, type z } from '@hono/zod-openapi'
import { finishLogin, stateInvalid, toStateId } from './auth/finishLogin.ts'
import { logout } from './auth/logout.ts'
import { toReturnTo } from './auth/returnTo.ts'
import { getSession, type SignedIn } from './auth/session.ts'
import { startLogin } from './auth/startLogin.ts'
import { type Schedule, scheduleByTimer } from './collateral/schedule.ts'
import { CoordinatorError } from './errors.ts'
import { getAttestation } from './health/getAttestation.ts'
import { prefersHtml } from './http/accept.ts'
import { createDocument } from './http/apiDocument.ts'
import { createAround } from './http/middleware.ts'
import type { AppContext, AppEnv } from './http/context.ts'
import {
  type CookieRules,
  clearLoginCookie,
  clearSessionCookie,
  listLoginCookies,
  readLoginCookie,
  readSessionCookie,
  toLoginCookieName,
  toSessionCookieName,
  writeLoginCookie,
  writeSessionCookie,
} from './http/cookies.ts'
import { type ApiDocument, DOCS_CSP, renderDocsPage, renderErrorsPage } from './http/docsPage.ts'
import type { Log } from './http/log.ts'
import { parseSignDigestRequest } from './http/parseSignDigestRequest.ts'
import { createOnError } from './http/problem.ts'
import { createProofEvents, EVENT_HEADERS } from './http/proofEvents.ts'
import {
  assertWithinLimit,
  createRateLimiter,
  type RateLimit,
  type RateLimiter,
  toRateLimitHeaders,
} from './http/rateLimit.ts'
import { assertEmptyBody, readJsonBody } from './http/readBody.ts'
import { createRefuseUnreadable } from './http/refuseUnreadable.ts'
import { routes } from './http/routes.ts'
import type { healthSchema, sessionUserSchema } from './http/schemas.ts'
import { isSignInPath, renderSignInPage } from './http/signInPage.ts'
import { getIpfsBlock } from './ipfs/gateway.ts'
import type { Clock, Entropy, IdentityProvider, KeyEnclave, Random, SelfReport } from './ports.ts'
import { getProof } from './proof/getProof.ts'
import { createProofWatcher } from './proof/watchProof.ts'
import { createSignerFinder } from './sign/findSigner.ts'
import type { SignDigestRequest, SignDigestResult } from './sign/signDigest.ts'
import type { Store } from './store/types.ts'
import { getWallet, toWalletInfo } from './wallet/getWallet.ts'
import { listTransactions } from './wallet/listTransactions.ts'
import { provisionWallet } from './wallet/provisionWallet.ts'

export type AppConfig = {
  /** Where browsers reach this service. `https` decides about `Secure`, `__Host-` and HSTS. */
  publicUrl: string
  /** Exact origins; sign-in returns to the first by default. */
  allowedOrigins: readonly string[]
  cookieSameSite: 'none' | 'lax' | 'strict'
  sessionTtlMs: number
  sessionIdleMs: number
  /** Addresses and CIDR ranges of our own proxies; with none, the socket's address counts. */
  trustedProxies: readonly string[]
  rateLimits: { sign: RateLimit; provision: RateLimit; auth: RateLimit; proof: RateLimit }
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
  /** Where `ipfsUrl` points; without it to `ipfs://`. */
  ipfsGatewayUrl?: string
  /** How often the store is asked for changes of proofs that somebody watches (1000). */
  proofPollMs?: number
  version?: string
}

export type AppDeps = {
  store: Store
  enclave: Pick<KeyEnclave, 'openSession'>
  entropy: Pick<Entropy, 'take'>
  selfReport: Pick<SelfReport, 'mode' | 'publicKey' | 'current' | 'sign'>
  /** By the id in `/auth/:provider`. */
  providers: ReadonlyMap<string, IdentityProvider>
  signDigest(request: SignDigestRequest): Promise<SignDigestResult>
  /** A block that this service holds, for the gateway; without it there is none. */
  getBlock?: (cid: string) => Promise<Uint8Array<ArrayBuffer> | undefined>
  clock: Clock
  random: Random
  log: Log
  /** The system's timers, unless a test has its own. */
  schedule?: Schedule
  config: AppConfig
}

export type App = {
  app: OpenAPIHono<AppEnv>
  /** Answers what is no request that the app could be given. */
  refuseUnreadable(error: unknown): Response
  /** Refuses new requests with `shutting_down`, ends the streams, and resolves when what was under way has been answered. */
  stop(): Promise<void>
}

/** A browser with more sign-ins than this under way has them cleared, before its headers grow too large to be read. */
const MAX_LOGIN_COOKIES = 8

/** When a place among the streams of an address may be free again is unknown; this is when their browsers would retry. */
const STREAM_RETRY_S = 4

/** The HTTP interface: routes in the order of specification §4. It does not listen. */
export function createApp(deps: AppDeps): App {
  const { store, clock, random, log, config, schedule = scheduleByTimer } = deps
  const { ipfsGatewayUrl, proofPollMs: pollMs = 1000 } = config
  const publicUrl = config.publicUrl.replace(/\/+$/, '')
  const isHttps = publicUrl.startsWith('https:')
  const cookies: CookieRules = { isHttps, sameSite: config.cookieSameSite }
  const limiters = {
    sign: createRateLimiter({ limit: config.rateLimits.sign, clock }),
    provision: createRateLimiter({ limit: config.rateLimits.provision, clock }),
    auth: createRateLimiter({ limit: config.rateLimits.auth, clock }),
    proof: createRateLimiter({ limit: config.rateLimits.proof, clock }),
    // Reads of one's own: as cheap as a proof, but polling proofs must not use them up.
    own: createRateLimiter({ limit: config.rateLimits.proof, clock }),
  }
  const watcher = createProofWatcher({ store, ipfsGatewayUrl, schedule, log, pollMs })
  const proofEvents = createProofEvents({ watcher, schedule })
  const app = new OpenAPIHono<AppEnv>()

  app.onError(
    createOnError({
      publicUrl,
      log,
      toPage(problem, c) {
        const { method, path } = c.req
        if ((method !== 'GET' && method !== 'HEAD') || !isSignInPath(path)) return undefined
        c.header('vary', 'Accept')
        if (!prefersHtml(c.req.header('accept'))) return undefined
        return { html: renderSignInPage(problem, { startUrl: config.allowedOrigins[0] }), csp: DOCS_CSP }
      },
    }),
  )
  app.notFound(() => {
    throw new CoordinatorError('not_found', 'there is nothing here')
  })

  const around = createAround({ config, isHttps, clock, random, log })
  app.use(around.every)
  app.use(around.admitted)

  type Route = (typeof routes)[keyof typeof routes]

  /** One method of a path. What other methods are answered must come before a later pattern that matches the path too. */
  function on(route: Route, handle: (c: AppContext) => Response | Promise<Response>) {
    const path = route.getRoutingPath()
    app.openAPIRegistry.registerPath(route)
    app.on(route.method.toUpperCase(), path, (c) => {
      c.set('route', path)
      return handle(c)
    })
    app.all(path, (c) => {
      c.set('route', path)
      const allow = route.method === 'get' ? 'GET, HEAD' : route.method.toUpperCase()
      c.header('allow', allow)
      throw new CoordinatorError('method_not_allowed', 'the method is not allowed here')
    })
  }

  function limit(c: AppContext, limiter: RateLimiter, key = `ip:${c.get('clientAddress')}`) {
    const state = limiter.take(key)
    if (state === undefined) return
    for (const [name, value] of Object.entries(toRateLimitHeaders(state))) c.header(name, value)
    assertWithinLimit(state)
  }

  const getSessionDeps = { store, clock, sessionIdleMs: config.sessionIdleMs }
  const signers = createSignerFinder(getSessionDeps)

  /** Counts by user; who is not one counts by address, so that guessing is limited too. */
  async function within<Found>(
    c: AppContext,
    limiter: RateLimiter,
    find: Promise<Found>,
    userIdOf: (found: Found) => string,
  ) {
    try {
      const found = await find
      limit(c, limiter, `user:${userIdOf(found)}`)
      return found
    } catch (error) {
      const isStranger =
        error instanceof CoordinatorError && (error.code === 'not_authenticated' || error.code === 'session_expired')
      if (isStranger) limit(c, limiter)
      throw error
    }
  }

  function signedInWithin(c: AppContext, limiter: RateLimiter): Promise<SignedIn> {
    const sid = readSessionCookie(cookies, c.req.header('cookie'))
    return within(c, limiter, getSession(getSessionDeps, { sid }), ({ user }) => user.id)
  }

  function getProvider(c: AppContext): { providerId: string; provider: IdentityProvider } {
    const providerId = c.req.param('provider') ?? ''
    const provider = deps.providers.get(providerId)
    if (provider === undefined) throw new CoordinatorError('not_found', 'no such identity provider')
    return { providerId, provider }
  }

  on(routes.index, (c) => c.redirect('/docs', 302))

  // Fixed paths under /auth come before the pattern that would match them.
  on(routes.me, async (c) => {
    const { user } = await signedInWithin(c, limiters.own)
    const body: z.infer<typeof sessionUserSchema> = { id: user.id, email: user.email, name: user.name }
    return c.json(body)
  })

  on(routes.logout, async (c) => {
    const found = await signedInWithin(c, limiters.auth)
    assertEmptyBody(await readJsonBody(c.req.raw))
    const body = await logout(deps, found)
    c.header('set-cookie', clearSessionCookie(cookies))
    return c.json(body)
  })

  on(routes.startLogin, async (c) => {
    limit(c, limiters.auth)
    const { providerId, provider } = getProvider(c)
    const returnTo = toReturnTo(config.allowedOrigins, c.req.queries('return_to') ?? [])
    const { id, loginSecret, location } = await startLogin(deps, { providerId, provider, returnTo })
    const earlier = listLoginCookies(cookies, c.req.header('cookie'))
    if (earlier.length >= MAX_LOGIN_COOKIES) {
      for (const name of earlier) c.header('set-cookie', clearLoginCookie(cookies, name), { append: true })
    }
    c.header('set-cookie', writeLoginCookie(cookies, id, loginSecret), { append: true })
    return c.redirect(location.href, 302)
  })

  on(routes.finishLogin, async (c) => {
    limit(c, limiters.auth)
    const { providerId, provider } = getProvider(c)
    const { search, searchParams } = new URL(c.req.url)
    const states = searchParams.getAll('state')
    const [state] = states
    const id = toStateId(state)
    if (state === undefined || id === undefined || states.length > 1) throw stateInvalid()
    const header = c.req.header('cookie')
    const loginSecret = readLoginCookie(cookies, header, id)
    if (loginSecret === undefined) throw stateInvalid()
    // Single use, whatever comes of it.
    c.header('set-cookie', clearLoginCookie(cookies, toLoginCookieName(cookies, id)), { append: true })
    const { sid, ttlMs, returnTo } = await finishLogin(
      { ...deps, sessionTtlMs: config.sessionTtlMs },
      {
        providerId,
        provider,
        callbackUrl: new URL(`${publicUrl}/auth/${providerId}/callback${search}`),
        state,
        loginSecret,
        earlierSid: readSessionCookie(cookies, header),
        requestId: c.get('requestId') ?? '',
      },
    )
    c.header('set-cookie', writeSessionCookie(cookies, sid, ttlMs), { append: true })
    return c.redirect(returnTo, 302)
  })

  on(routes.getWallet, async (c) => {
    const { user } = await signedInWithin(c, limiters.own)
    return c.json(await getWallet(deps, { userId: user.id }))
  })

  on(routes.listTransactions, async (c) => {
    const { user } = await signedInWithin(c, limiters.own)
    const [limits, cursors] = [c.req.queries('limit') ?? [], c.req.queries('cursor') ?? []]
    return c.json(await listTransactions(deps, { userId: user.id, limits, cursors }))
  })

  on(routes.provisionWallet, async (c) => {
    const { user, session } = await signedInWithin(c, limiters.provision)
    assertEmptyBody(await readJsonBody(c.req.raw))
    return c.json(toWalletInfo(await provisionWallet(deps, { user, session })))
  })

  on(routes.signDigest, async (c) => {
    const [parsed] = await Promise.allSettled([readSignDigest(c)])
    if (parsed.status === 'rejected') {
      // Strangers are told that they are, whatever they sent.
      await signedInWithin(c, limiters.sign)
      throw parsed.reason
    }
    const { digest, txMetadata } = parsed.value
    const cookie = readSessionCookie(cookies, c.req.header('cookie'))
    const signer = await within(c, limiters.sign, signers.find({ sid: cookie, digest }), ({ userId }) => userId)
    const { sid, grant, keyId, walletId, address, signed } = signer
    if (walletId === undefined) throw new CoordinatorError('wallet_not_provisioned', 'the user has no wallet')
    const request = { sid, grant, keyId, walletId, address, digest, txMetadata }
    const { signature, slug } = signed ?? (await deps.signDigest(request))
    return c.json({ signature, slug })
  })

  async function readSignDigest(c: AppContext) {
    const body = await readJsonBody(c.req.raw)
    return parseSignDigestRequest(body, { allowedChainIds: config.allowedChainIds })
  }

  on(routes.getProof, async (c) => {
    limit(c, limiters.proof)
    const { status, body, version } = await getProof({ store, ipfsGatewayUrl }, { slug: c.req.param('slug') ?? '' })
    const etag = `"${version}"`
    c.header('etag', etag)
    // A complete proof still changes when a reorganisation moves its event, so it is not cached for good.
    c.header('cache-control', status === 'complete' ? 'public, max-age=60' : 'no-cache')
    if (isMatch(c.req.header('if-none-match'), etag)) return c.body(null, 304)
    return c.body(body, 200, { 'content-type': 'application/json' })
  })

  on(routes.proofEvents, async (c) => {
    limit(c, limiters.proof)
    const slug = c.req.param('slug') ?? ''
    const address = c.get('clientAddress') ?? ''
    if (c.req.method === 'HEAD') {
      await getProof({ store, ipfsGatewayUrl }, { slug })
      return c.body(null, 200, EVENT_HEADERS)
    }
    if (proofEvents.isFull(address)) {
      c.header('retry-after', String(STREAM_RETRY_S))
      throw new CoordinatorError('rate_limited', 'too many streams', { details: 'too many streams are open' })
    }
    const { signal } = c.req.raw
    const events = await proofEvents.open({ slug, address, lastEventId: c.req.header('last-event-id'), signal })
    return events === undefined ? c.body(null, 204) : c.body(events, 200, EVENT_HEADERS)
  })

  on(routes.getBlock, async (c) => {
    limit(c, limiters.proof, `ipfs:${c.get('clientAddress')}`)
    const { getBlock } = deps
    if (getBlock === undefined) throw new CoordinatorError('not_found', 'there is no gateway here')
    const { status, headers, body } = await getIpfsBlock(
      { getBlock },
      {
        method: c.req.method === 'HEAD' ? 'HEAD' : 'GET',
        cid: c.req.param('cid') ?? '',
        format: c.req.query('format'),
        accept: c.req.header('accept'),
        ifNoneMatch: c.req.header('if-none-match'),
      },
    )
    for (const [name, value] of Object.entries(headers)) c.header(name, value)
    if (status === 400) {
      throw new CoordinatorError('invalid_request', 'invalid CID', { details: 'not a CID of a block of this service' })
    }
    if (status === 404) throw new CoordinatorError('not_found', 'the block is not here')
    if (status === 406) throw new CoordinatorError('not_acceptable', 'no format that is asked for can be given')
    return body === null ? c.body(null, status) : c.body(body, status)
  })

  on(routes.health, (c) => {
    const body: z.infer<typeof healthSchema> = { status: 'ok' }
    return c.json(body)
  })

  on(routes.ready, async (c) => {
    await ping(store)
    await getAttestation(deps, { nonce: undefined })
    const body: z.infer<typeof healthSchema> = { status: 'ready' }
    return c.json(body)
  })

  on(routes.getAttestation, async (c) => {
    limit(c, limiters.proof, `attestation:${c.get('clientAddress')}`)
    return c.json(await getAttestation(deps, { nonce: c.req.query('nonce') }))
  })

  const getDocument = createDocument(app, {
    publicUrl,
    version: config.version ?? '0.1.0',
    sessionCookie: toSessionCookieName(cookies),
  })

  // Open to everybody, without a limit, and never changing: they are written once.
  let openapiText: string | undefined
  let docsPage: string | undefined

  on(routes.openapi, (c) => {
    c.header('cache-control', 'public, max-age=300')
    openapiText ??= JSON.stringify(getDocument())
    return c.body(openapiText, 200, { 'content-type': 'application/json' })
  })

  on(routes.docs, (c) => {
    c.header('content-security-policy', DOCS_CSP)
    docsPage ??= renderDocsPage(getDocument() as unknown as ApiDocument)
    return c.html(docsPage)
  })

  on(routes.docsErrors, (c) => {
    c.header('content-security-policy', DOCS_CSP)
    return c.html(renderErrorsPage('Countersign'))
  })

  return {
    app,
    refuseUnreadable: createRefuseUnreadable({ publicUrl, isHttps, random, log }),
    async stop() {
      proofEvents.stop()
      // Their last bytes are written in this turn; whoever closes the connections next must not cut them.
      await around.stop()
    },
  }
}

async function ping(store: Pick<Store, 'ping'>): Promise<void> {
  try {
    await store.ping()
  } catch (error) {
    throw new CoordinatorError('database_unavailable', 'the database cannot be reached', { cause: error })
  }
}

/** RFC 9110 §13.1.2: a list of tags, compared weakly, or `*`. */
function isMatch(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
