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
    // Reads of the user's own data: as cheap as a proof, but polling proofs must not use them up.
    own: createRateLimiter({ limit: rateLimits.proof, clock }),
    // As dear as a provisioning, but neither uses the other's up.
    exports: createRateLimiter({ limit: rateLimits.provision, clock }),
  }
}

/** Counts a request, by the caller's address unless another key is given. Throws `rate_limited`. */
export function limit(c: RequestContext, limiter: RateLimiter, key = `ip:${c.clientAddress}`): void {
  const state = limiter.take(key)
  if (state === undefined) return
  for (const [name, value] of Object.entries(toRateLimitHeaders(state))) c.header(name, value)
  assertWithinLimit(state)
}

/** What a caller who guesses sessions, or addresses of vaults, is answered. */
const GUESSES: ReadonlySet<string> = new Set(['not_authenticated', 'session_expired', 'vault_not_found'])

/** Counts a request by its user. A caller without a session, or with a vault of nobody, counts by address, so that guessing is limited too. */
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
    if (error instanceof CoordinatorError && GUESSES.has(error.code)) limit(c, limiter)
    throw error
  }
}
