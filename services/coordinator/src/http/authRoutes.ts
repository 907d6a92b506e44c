import { type EndpointResponse, parseRequest, type SessionUser } from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { isClientKey } from '../accounts/clientKey.ts'
import type { DirectProvider, IdentityProvider } from '../accounts/oidc.ts'
import { getSession, listSessions, logout, toSessionInfo } from '../accounts/session.ts'
import {
  type FinishLoginDeps,
  finishDirectLogin,
  finishLogin,
  startLogin,
  stateInvalid,
  toReturnTo,
  toStateId,
} from '../accounts/signIn.ts'
import { CoordinatorError, type CoordinatorErrorCode, invalidBody, invalidRequest, toPublicCode } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { Random } from '../system.ts'
import { toReason } from '../toReason.ts'
import { prefersHtml } from './accept.ts'
import { type AppContext, toQuery } from './context.ts'
import {
  type CookieRules,
  clearChoiceCookie,
  clearLoginCookie,
  clearSessionCookie,
  hasChoiceCookie,
  listLoginCookies,
  readLoginCookie,
  readSessionCookie,
  readSessionSecret,
  toLoginCookieName,
  writeChoiceCookie,
  writeLoginCookie,
  writeSessionCookie,
} from './cookies.ts'
import { type Limiters, limit } from './limiters.ts'
import { readFormBody, readJsonBody, readOptionalBody } from './readBody.ts'
import type { Handlers } from './router.ts'
import type { GetSignedIn } from './signedIn.ts'

export type AuthRoutesDeps = FinishLoginDeps & {
  store: Pick<Store, 'createLogin' | 'findSession' | 'listSessions' | 'deleteSession' | 'deleteSessions'>
  /** By the id in `/auth/:provider`. */
  providers: ReadonlyMap<string, IdentityProvider | DirectProvider>
  random: Random
  /** Without a trailing slash. */
  publicUrl: string
  allowedOrigins: readonly string[]
  sessionIdleMs: number
  cookies: CookieRules
  limiters: Limiters
  getSignedIn: GetSignedIn
}

/** A browser with this many unfinished sign-ins gets them cleared. Otherwise its headers would exceed the size limit. */
const MAX_LOGIN_COOKIES = 8

/** The fields of a provider's response that the callback needs. Others, such as Apple's `user`, are unsigned and dropped. */
const CALLBACK_FIELDS = ['code', 'state', 'iss', 'error']
const MAX_QUERY_LENGTH = 8192

/** Failures that the operator should know about. */
const PROVIDER_ERRORS: ReadonlySet<CoordinatorErrorCode> = new Set(['provider_unavailable', 'oauth_refused'])

export function registerAuthRoutes(handlers: Handlers, deps: AuthRoutesDeps): void {
  const { publicUrl, allowedOrigins, cookies, limiters, getSignedIn } = deps

  function getProvider(c: AppContext): { providerId: string; provider: IdentityProvider } {
    const providerId = c.params.provider ?? ''
    const provider = deps.providers.get(providerId)
    if (provider === undefined || 'direct' in provider) {
      throw new CoordinatorError('not_found', 'no such identity provider, or pages sign in there themselves')
    }
    return { providerId, provider }
  }

  function getDirectProvider(c: AppContext): DirectProvider {
    const provider = deps.providers.get(c.params.provider ?? '')
    if (provider !== undefined && 'direct' in provider) return provider
    throw new CoordinatorError('not_found', 'no such identity provider, or it is not for direct sign-in')
  }

  /** No other log line names the provider. Logs at most one line per request. */
  function reportProvider(c: AppContext, providerId: string): (error: unknown) => never {
    return (error) => {
      if (PROVIDER_ERRORS.has(toPublicCode(error))) {
        const requestId = c.requestId
        deps.log.warn({ msg: 'Could not sign a user in', requestId, provider: providerId, ...toReason(error) })
      }
      throw error
    }
  }

  /** Browsers send at least the origin of the page before, unless the page forbids it. */
  function isAllowedReferrer(referrer: string | undefined): boolean {
    return referrer !== undefined && URL.canParse(referrer) && allowedOrigins.includes(new URL(referrer).origin)
  }

  async function signOut(c: AppContext): Promise<boolean> {
    const found = await getSession(deps, { sid: readSessionSecret(cookies, c.req) })
    const request = parseRequest('POST /auth/logout', await readOptionalBody(c.incoming), invalidBody)
    return logout(deps, found, request)
  }

  handlers.set('GET /auth', (c) => {
    limit(c, limiters.proof, `auth:${c.clientAddress}`)
    c.header('vary', 'Accept')
    const providers = [...deps.providers].map(([id, { name, icon, ...rest }]) => {
      return 'direct' in rest ? { id, name, icon, direct: rest.direct } : { id, name, icon }
    })
    const first = providers.find((provider) => !('direct' in provider))
    // A sign-in without a provider. The route that it redirects to applies the usual guards.
    if (first !== undefined && prefersHtml(c.req.header('accept'))) {
      return c.redirect(`${publicUrl}/auth/${first.id}${c.req.search}`, 302)
    }
    const body: EndpointResponse<'GET /auth'> = { providers }
    return c.json(body)
  })

  // Fixed paths under /auth come before the pattern that would match them.
  handlers.set('GET /auth/me', async (c) => {
    const { user } = await getSignedIn(c, limiters.own)
    const body: SessionUser = { id: user.id, email: user.email, name: user.name }
    return c.json(body)
  })

  handlers.set('GET /auth/session', async (c) => {
    const { session } = await getSignedIn(c, limiters.own)
    return c.json(toSessionInfo(session, deps.clock))
  })

  handlers.set('GET /auth/sessions', async (c) => c.json(await listSessions(deps, await getSignedIn(c, limiters.own))))

  handlers.set('POST /auth/logout', async (c) => {
    // Sets the cookie even if the session has already ended, because the provider may still remember the user.
    c.header('set-cookie', writeChoiceCookie(cookies))
    const isOver = await signOut(c).catch((error: unknown) => {
      // Counts only rejected calls, and by address: a thief of the session must not exhaust the limit that its owner needs to sign out.
      if (errorCodes[toPublicCode(error)].status < 500) limit(c, limiters.auth)
      throw error
    })
    // With the header, another session may be in the cookie.
    if (isOver && c.req.header('authorization') === undefined)
      c.header('set-cookie', clearSessionCookie(cookies), { append: true })
    const body: EndpointResponse<'POST /auth/logout'> = { ok: true }
    return c.json(body)
  })

  handlers.set('GET /auth/:provider', async (c) => {
    limit(c, limiters.auth)
    const { providerId, provider } = getProvider(c)
    const returnTo = toReturnTo(allowedOrigins, toQuery(c.req).getAll('return_to'))
    c.returnTo = returnTo
    const header = c.req.header('cookie')
    const mustChoose = hasChoiceCookie(cookies, header)
    const clientKey = readClientKey(toQuery(c.req).getAll('client_key'))
    // Otherwise any site could bind the user's next session to its own key, and would then only need the cookie.
    const isForeign = c.req.header('sec-fetch-site') === 'cross-site' && !isAllowedReferrer(c.req.header('referer'))
    if (clientKey !== undefined && isForeign) {
      throw new CoordinatorError('origin_not_allowed', 'a sign-in with a browser key must start on a page of the app')
    }
    const started = startLogin(deps, { providerId, provider, returnTo, mustChoose, clientKey })
    const { id, loginSecret, location } = await started.catch(reportProvider(c, providerId))
    const earlier = listLoginCookies(cookies, header)
    if (earlier.length >= MAX_LOGIN_COOKIES) {
      for (const name of earlier) c.header('set-cookie', clearLoginCookie(cookies, name), { append: true })
    }
    c.header('set-cookie', writeLoginCookie(cookies, id, loginSecret), { append: true })
    return c.redirect(location.href, 302)
  })

  handlers.set('POST /auth/:provider/token', async (c) => {
    limit(c, limiters.auth)
    const provider = getDirectProvider(c)
    const token = parseRequest('POST /auth/:provider/token', await readJsonBody(c.incoming), invalidBody)
    if (!isClientKey(token.clientKey)) throw invalidRequest('clientKey: expected an uncompressed P-256 point')
    return c.json(await finishDirectLogin(deps, { provider, token, requestId: c.requestId }))
  })

  handlers.set('GET /auth/:provider/callback', async (c) => {
    limit(c, limiters.auth)
    const { providerId, provider } = getProvider(c)
    const { search } = c.req
    const states = toQuery(c.req).getAll('state')
    const [state] = states
    const id = toStateId(state)
    if (state === undefined || id === undefined || states.length > 1) throw stateInvalid()
    const header = c.req.header('cookie')
    const loginSecret = readLoginCookie(cookies, header, id)
    if (loginSecret === undefined) throw stateInvalid()
    // Cleared on success and on failure, because a login cookie is for one use.
    c.header('set-cookie', clearLoginCookie(cookies, toLoginCookieName(cookies, id)), { append: true })
    const finished = finishLogin(deps, {
      providerId,
      provider,
      callbackUrl: new URL(`${publicUrl}/auth/${providerId}/callback${search}`),
      state,
      loginSecret,
      earlierSid: readSessionCookie(cookies, header),
      onReturnTo(page) {
        c.returnTo = page
      },
      requestId: c.requestId,
    })
    const { cookie, returnTo } = await finished.catch(reportProvider(c, providerId))
    if (cookie !== undefined) {
      c.header('set-cookie', writeSessionCookie(cookies, cookie.sid, cookie.ttlMs), { append: true })
      c.header('set-cookie', clearChoiceCookie(cookies), { append: true })
    }
    return c.redirect(returnTo, 302)
  })

  // A cross-site POST arrives without the login cookie, which is SameSite=Lax. The navigation that follows includes it.
  handlers.set('POST /auth/:provider/form', async (c) => {
    limit(c, limiters.auth)
    const { providerId } = getProvider(c)
    const form = await readFormBody(c.incoming)
    const query = new URLSearchParams()
    for (const name of CALLBACK_FIELDS) for (const value of form.getAll(name)) query.append(name, value)
    if (query.toString().length > MAX_QUERY_LENGTH) {
      throw new CoordinatorError('invalid_request', 'the form is too long', { details: 'the form is too long' })
    }
    return c.redirect(`${publicUrl}/auth/${providerId}/callback?${query}`, 303)
  })
}

function readClientKey([clientKey, ...rest]: readonly string[]): string | undefined {
  if (clientKey !== undefined && (rest.length > 0 || !isClientKey(clientKey))) {
    throw invalidRequest('client_key: expected one uncompressed P-256 point in lower-case hex')
  }
  return clientKey
}
