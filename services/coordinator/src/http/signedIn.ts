import { getSession, type SignedIn } from '../accounts/session.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock } from '../system.ts'
import type { RequestContext } from './context.ts'
import { type CookieRules, readSessionSecret } from './cookies.ts'
import { limitByUser } from './limiters.ts'
import type { RateLimiter } from './rateLimit.ts'

/** Returns the session of a request and counts it against a limit. Throws `not_authenticated`, `session_expired` and `rate_limited`. */
export type GetSignedIn = (c: RequestContext, limiter: RateLimiter) => Promise<SignedIn>

export function createGetSignedIn(deps: {
  store: Pick<Store, 'findSession'>
  clock: Clock
  sessionIdleMs: number
  cookies: CookieRules
}): GetSignedIn {
  return (c, limiter) => {
    const sid = readSessionSecret(deps.cookies, c.req)
    return limitByUser(c, limiter, getSession(deps, { sid }), ({ user }) => user.id)
  }
}
