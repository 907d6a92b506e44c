import { CoordinatorError } from '../errors.ts'
import type { Clock } from '../system.ts'
import type { RequestContext } from './context.ts'
import {
  assertWithinLimit,
  createRateLimiter,
  type RateLimit,
  type RateLimiter,
  toRateLimitHeaders,
} from './rateLimit.ts'

export type RateLimits = { sign: RateLimit; provision: RateLimit; auth: RateLimit; proof: RateLimit }

export type Limiters = Record<keyof RateLimits | 'own' | 'exports', RateLimiter>

export function createLimiters({ rateLimits, clock }: { rateLimits: RateLimits; clock: Clock }): Limiters {
  return {
    sign: createRateLimiter({ limit: rateLimits.sign, clock }),
    provision: createRateLimiter({ limit: rateLimits.provision, clock }),
    auth: createRateLimiter({ limit: rateLimits.auth, clock }),
    proof: createRateLimiter({ limit: rateLimits.proof, clock }),
    // For reads of the user's own data. They have the proofs' rate but a separate count, so polling proofs can't exhaust it.
    own: createRateLimiter({ limit: rateLimits.proof, clock }),
    // They cost as much as creating a wallet, but are counted separately.
    exports: createRateLimiter({ limit: rateLimits.provision, clock }),
  }
}

/** Counts a request by address, or by `key` if given. Throws `rate_limited`. */
export function limit(c: RequestContext, limiter: RateLimiter, key = `ip:${c.clientAddress}`): void {
  const state = limiter.take(key)
  if (state === undefined) return
  for (const [name, value] of Object.entries(toRateLimitHeaders(state))) c.header(name, value)
  assertWithinLimit(state)
}

/** Error codes that a caller gets for guessing sessions or vault addresses. */
const GUESS_CODES: ReadonlySet<string> = new Set(['not_authenticated', 'session_expired', 'vault_not_found'])

/** Counts a request by user. A failed guess of a session or vault counts by address, so guessing is limited, too. */
export async function limitByUser<Found>(
  c: RequestContext,
  limiter: RateLimiter,
  find: Promise<Found>,
  userIdOf: (found: Found) => string,
): Promise<Found> {
  try {
    const found = await find
    limit(c, limiter, `user:${userIdOf(found)}`)
    return found
  } catch (error) {
    if (error instanceof CoordinatorError && GUESS_CODES.has(error.code)) limit(c, limiter)
    throw error
  }
}
