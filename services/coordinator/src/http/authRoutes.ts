import type { EndpointResponse, SessionUser } from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import type { IdentityProvider } from '../accounts/oidc.ts'
import { getSession, logout } from '../accounts/session.ts'
import {
  type FinishLoginDeps,
  finishLogin,
  startLogin,
  stateInvalid,
  toReturnTo,
  toStateId,
} from '../accounts/signIn.ts'
import { CoordinatorError, type CoordinatorErrorCode, toPublicCode } from '../errors.ts'
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
  toLoginCookieName,
  writeChoiceCookie,
  writeLoginCookie,
  writeSessionCookie,
} from './cookies.ts'
import { type Limiters, limit } from './limiters.ts'
import { assertEmptyBody, readFormBody, readJsonBody } from './readBody.ts'
import type { Handlers } from './router.ts'
import type { GetSignedIn } from './signedIn.ts'

export type AuthRoutesDeps = FinishLoginDeps & {
  store: Pick<Store, 'createLogin' | 'findSession' | 'deleteSession'>
  /** By the id in `/auth/:provider`. */
  providers: ReadonlyMap<string, IdentityProvider>
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
    if (provider === undefined) throw new CoordinatorError('not_found', 'no such identity provider')
    return { providerId, provider }
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

  async function signOut(c: AppContext): Promise<EndpointResponse<'POST /auth/logout'>> {
    const found = await getSession(deps, { sid: readSessionCookie(cookies, c.req.header('cookie')) })
    assertEmptyBody(await readJsonBody(c.incoming))
    return logout(deps, found)
  }

  handlers.set('GET /auth', (c) => {
    limit(c, limiters.proof, `auth:${c.clientAddress}`)
    c.header('vary', 'Accept')
    const providers = [...deps.providers].map(([id, { name, icon }]) => ({ id, name, icon }))
    const [first] = providers
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

  handlers.set('POST /auth/logout', async (c) => {
    // Sets the cookie even if the session has already ended, because the provider may still remember the user.
    c.header('set-cookie', writeChoiceCookie(cookies))
    const body = await signOut(c).catch((error: unknown) => {
      // Counts only rejected calls, and by address: a thief of the session must not exhaust the limit that its owner needs to sign out.
      if (errorCodes[toPublicCode(error)].status < 500) limit(c, limiters.auth)
      throw error
    })
    c.header('set-cookie', clearSessionCookie(cookies), { append: true })
    return c.json(body)
  })

  handlers.set('GET /auth/:provider', async (c) => {
    limit(c, limiters.auth)
    const { providerId, provider } = getProvider(c)
    const returnTo = toReturnTo(allowedOrigins, toQuery(c.req).getAll('return_to'))
    c.returnTo = returnTo
    const header = c.req.header('cookie')
    const mustChoose = hasChoiceCookie(cookies, header)
    const started = startLogin(deps, { providerId, provider, returnTo, mustChoose })
    const { id, loginSecret, location } = await started.catch(reportProvider(c, providerId))
    const earlier = listLoginCookies(cookies, header)
    if (earlier.length >= MAX_LOGIN_COOKIES) {
      for (const name of earlier) c.header('set-cookie', clearLoginCookie(cookies, name), { append: true })
    }
    c.header('set-cookie', writeLoginCookie(cookies, id, loginSecret), { append: true })
    return c.redirect(location.href, 302)
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
