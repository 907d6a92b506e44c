import { CoordinatorError } from '../errors.ts'
import type { Clock } from '../system.ts'

/** `count` requests per `seconds`. */
export type RateLimit = { count: number; seconds: number } | 'off'

/** Parses `count/seconds` or `off`. Returns undefined if the text is invalid. */
export function parseRateLimit(text: string): RateLimit | undefined {
  if (text === 'off') return 'off'
  const match = /^([1-9][0-9]{0,8})\/([1-9][0-9]{0,5})$/.exec(text)
  return match === null ? undefined : { count: Number(match[1]), seconds: Number(match[2]) }
}

/** Values of the `RateLimit-*` headers, and of `Retry-After` for rejected requests. */
export type RateLimitState = {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Seconds until the bucket is full. */
  resetSeconds: number
  /** Seconds until one request is allowed. */
  retryAfterSeconds: number
  windowSeconds: number
}

export type RateLimiter = {
  /** Takes one request from a key's bucket. Returns undefined if there is no limit. */
  take(key: string): RateLimitState | undefined
  /** Seconds until the key's next request is allowed, or 0. Takes nothing from the bucket. */
  getWaitSeconds(key: string): number
}

/** Above this number, the least recently used bucket is dropped. Limiting memory matters more than exact counts. */
const MAX_BUCKETS = 20_000

/** Token buckets with a burst of `count`, refilled at `count` per `seconds`. Each process counts separately. */
export function createRateLimiter(parameters: { limit: RateLimit; clock: Clock; maxBuckets?: number }): RateLimiter {
  const { limit, clock, maxBuckets = MAX_BUCKETS } = parameters
  if (limit === 'off') return { take: () => undefined, getWaitSeconds: () => 0 }
  const { count, seconds } = limit
  const perMs = count / (seconds * 1000)
  // In order of use: the first is the least recently used.
  const buckets = new Map<string, { tokens: number; at: number }>()

  function fill(key: string, now: number): number {
    const earlier = buckets.get(key)
    const elapsedMs = earlier === undefined ? 0 : Math.max(0, now - earlier.at)
    return earlier === undefined ? count : Math.min(count, earlier.tokens + elapsedMs * perMs)
  }
  // The tolerance admits a caller that waited exactly `Retry-After`.
  const isEnough = (tokens: number) => tokens >= 1 - 1e-9
  const toWaitSeconds = (tokens: number) =>
    isEnough(tokens) ? 0 : Math.max(1, Math.ceil((1 - tokens) / perMs / 1000 - 1e-9))

  return {
    getWaitSeconds: (key) => toWaitSeconds(fill(key, clock.now())),
    take(key) {
      const now = clock.now()
      const filled = fill(key, now)
      const isAllowed = isEnough(filled)
      const tokens = isAllowed ? Math.max(0, filled - 1) : filled
      buckets.delete(key)
      buckets.set(key, { tokens, at: now })
      if (buckets.size > maxBuckets) {
        const oldest = buckets.keys().next().value
        if (oldest !== undefined) buckets.delete(oldest)
      }
      return {
        isAllowed,
        limit: count,
        remaining: Math.floor(tokens + 1e-9),
        resetSeconds: Math.ceil((count - tokens) / perMs / 1000 - 1e-9),
        retryAfterSeconds: toWaitSeconds(filled),
        windowSeconds: seconds,
      }
    },
  }
}

export function toRateLimitHeaders(state: RateLimitState): Record<string, string> {
  return {
    'RateLimit-Limit': String(state.limit),
    'RateLimit-Remaining': String(state.remaining),
    'RateLimit-Reset': String(state.resetSeconds),
    'RateLimit-Policy': `${state.limit};w=${state.windowSeconds}`,
    ...(state.isAllowed ? {} : { 'Retry-After': String(state.retryAfterSeconds) }),
  }
}

export function assertWithinLimit(state: RateLimitState | undefined): void {
  if (state !== undefined && !state.isAllowed) throw new CoordinatorError('rate_limited', 'too many requests')
}
