import type { SessionUser } from '@countersign/protocol'
import { type FinishLoginDeps, finishLogin, stateInvalid, toStateId } from '../auth/finishLogin.ts'
import { logout } from '../auth/logout.ts'
import { toReturnTo } from '../auth/returnTo.ts'
import { startLogin } from '../auth/startLogin.ts'
import { CoordinatorError } from '../errors.ts'
import type { IdentityProvider, Random, Store } from '../ports.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import type { AppContext } from './context.ts'
import {
  type CookieRules,
  clearLoginCookie,
  clearSessionCookie,
  listLoginCookies,
  readLoginCookie,
  readSessionCookie,
  toLoginCookieName,
  writeLoginCookie,
  writeSessionCookie,
} from './cookies.ts'
import { type Limiters, limit } from './limiters.ts'
import { assertEmptyBody, readJsonBody } from './readBody.ts'
import { routes } from './routes.ts'
import type { GetSignedIn } from './signedIn.ts'

export type AuthRoutesDeps = FinishLoginDeps & {
  store: Pick<Store, 'createLogin' | 'deleteSession'>
  /** By the id in `/auth/:provider`. */
  providers: ReadonlyMap<string, IdentityProvider>
  random: Random
  /** Without a trailing slash. */
  publicUrl: string
  allowedOrigins: readonly string[]
  cookies: CookieRules
  limiters: Limiters
  getSignedIn: GetSignedIn
}

/** A browser with more sign-ins than this under way has them cleared, before its headers grow too large to be read. */
const MAX_LOGIN_COOKIES = 8

export function registerAuthRoutes(app: HttpApp, deps: AuthRoutesDeps): void {
  const { publicUrl, allowedOrigins, cookies, limiters, getSignedIn } = deps

  function getProvider(c: AppContext): { providerId: string; provider: IdentityProvider } {
    const providerId = c.req.param('provider') ?? ''
    const provider = deps.providers.get(providerId)
    if (provider === undefined) throw new CoordinatorError('not_found', 'no such identity provider')
    return { providerId, provider }
  }

  // Fixed paths under /auth come before the pattern that would match them.
  addRoute(app, routes['GET /auth/me'], async (c) => {
    const { user } = await getSignedIn(c, limiters.own)
    const body: SessionUser = { id: user.id, email: user.email, name: user.name }
    return c.json(body)
  })

  addRoute(app, routes['POST /auth/logout'], async (c) => {
    const found = await getSignedIn(c, limiters.auth)
    assertEmptyBody(await readJsonBody(c.req.raw))
    const body = await logout(deps, found)
    c.header('set-cookie', clearSessionCookie(cookies))
    return c.json(body)
  })

  addRoute(app, routes['GET /auth/:provider'], async (c) => {
    limit(c, limiters.auth)
    const { providerId, provider } = getProvider(c)
    const returnTo = toReturnTo(allowedOrigins, c.req.queries('return_to') ?? [])
    const { id, loginSecret, location } = await startLogin(deps, { providerId, provider, returnTo })
    const earlier = listLoginCookies(cookies, c.req.header('cookie'))
    if (earlier.length >= MAX_LOGIN_COOKIES) {
      for (const name of earlier) c.header('set-cookie', clearLoginCookie(cookies, name), { append: true })
    }
    c.header('set-cookie', writeLoginCookie(cookies, id, loginSecret), { append: true })
    return c.redirect(location.href, 302)
  })

  addRoute(app, routes['GET /auth/:provider/callback'], async (c) => {
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
    // Cleared on success and on failure: a login cookie is for one use.
    c.header('set-cookie', clearLoginCookie(cookies, toLoginCookieName(cookies, id)), { append: true })
    const { sid, ttlMs, returnTo } = await finishLogin(deps, {
      providerId,
      provider,
      callbackUrl: new URL(`${publicUrl}/auth/${providerId}/callback${search}`),
      state,
      loginSecret,
      earlierSid: readSessionCookie(cookies, header),
      requestId: c.get('requestId') ?? '',
    })
    c.header('set-cookie', writeSessionCookie(cookies, sid, ttlMs), { append: true })
    return c.redirect(returnTo, 302)
  })
}
