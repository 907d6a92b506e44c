import { CoordinatorError } from '../errors.ts'
import type { RequestHead } from './context.ts'

/** Reads that need no session. Any page may make them. */
const PUBLIC_PATHS = [/^\/auth$/, /^\/proof\//, /^\/health(?:\/|$)/, /^\/openapi\.json$/, /^\/ipfs\//, /^\/log(?:\/|$)/]

export function isPublicPath(path: string): boolean {
  return PUBLIC_PATHS.some((pattern) => pattern.test(path))
}

/** Identity providers post forms here from their own origin. The handler reads no cookies and changes nothing. */
export function isProviderForm(path: string): boolean {
  return /^\/auth\/[^/]+\/form$/.test(path)
}

export type OriginRules = { allowedOrigins: readonly string[] }

type OriginHeaders = { origin: string | undefined; fetchSite: string | undefined; hasCookie: boolean }

/**
 * Rejects calls that change something, unless they come from an allowed page. With SameSite=None, every site can send the session cookie, so
 * the exact origin is what stops a foreign page from getting a signature.
 */
export function assertOrigin(rules: OriginRules, { origin, fetchSite, hasCookie }: OriginHeaders): void {
  if (origin !== undefined) {
    if (!rules.allowedOrigins.includes(origin)) throw notAllowed()
    return
  }
  // A call without an Origin passes if it has no cookies and no browser marks it as coming from another site.
  if (hasCookie || (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none')) throw notAllowed()
}

/** `Sec-Fetch-Dest` of navigations inside another page. */
const FRAMES: ReadonlySet<string> = new Set(['iframe', 'frame', 'fencedframe', 'object', 'embed'])

/**
 * Rejects a read before it counts against the user's limits, if another site caused it or the browser prefetches it. Any page can make a
 * browser load any address, in an image, in a frame or by prefetching, with the user's cookies. Pages that the user opens and reads by
 * allowed pages pass. If a prefetch was rejected, the browser repeats the request when the user clicks. Callers other than browsers don't
 * send these headers and pass.
 */
export function assertNotEmbedded(rules: OriginRules, head: RequestHead): void {
  const origin = head.header('origin')
  if (isPublicPath(head.path) || (origin !== undefined && rules.allowedOrigins.includes(origin))) return
  const site = head.header('sec-fetch-site')
  const isNavigation = head.header('sec-fetch-mode') === 'navigate'
  const isPage = isNavigation && !FRAMES.has(head.header('sec-fetch-dest') ?? '')
  // Reads by a same-origin page that is being prerendered pass, because the browser doesn't repeat them.
  const isAhead = head.header('sec-purpose') !== undefined && (isNavigation || site !== 'same-origin')
  if ((site === 'cross-site' && !isPage) || isAhead) throw notAllowed()
}

const EXPOSED =
  'x-request-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, ratelimit-policy, etag'

/** CORS headers: allowed origins get credentials, other origins only public reads without credentials. */
export function toCorsHeaders(
  rules: OriginRules,
  { origin, path, method }: { origin: string | undefined; path: string; method: string },
): Record<string, string> {
  if (origin !== undefined && rules.allowedOrigins.includes(origin)) {
    return {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': EXPOSED,
    }
  }
  if (isPublicPath(path) && (method === 'GET' || method === 'HEAD')) {
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED }
  }
  return {}
}

type Preflight = { origin: string | undefined; path: string; requestedMethod: string }

/** Headers of a preflight response, including the CORS headers. Throws if the origin may not make the call. */
export function toPreflightHeaders(rules: OriginRules, preflight: Preflight): Record<string, string> {
  const { origin, path, requestedMethod } = preflight
  const cors = toCorsHeaders(rules, { origin, path, method: requestedMethod })
  if (cors['access-control-allow-origin'] === undefined) throw notAllowed()
  return {
    ...cors,
    'access-control-allow-methods': cors['access-control-allow-credentials'] === undefined ? 'GET' : 'GET, POST',
    'access-control-allow-headers': 'authorization, content-type, x-request-id, if-none-match, last-event-id',
    'access-control-max-age': '600',
  }
}

function notAllowed() {
  return new CoordinatorError('origin_not_allowed', 'the origin is not allowed')
}
