import { CoordinatorError } from '../errors.ts'
import type { RequestHead } from './context.ts'

/** Reads that need no session and that any page may make. */
const PUBLIC_PATHS = [/^\/auth$/, /^\/proof\//, /^\/health(?:\/|$)/, /^\/openapi\.json$/, /^\/ipfs\//, /^\/log(?:\/|$)/]

export function isPublicPath(path: string): boolean {
  return PUBLIC_PATHS.some((pattern) => pattern.test(path))
}

/** Where providers post their answers, from their own origin. No cookie is read there, and nothing changed. */
export function isProviderForm(path: string): boolean {
  return /^\/auth\/[^/]+\/form$/.test(path)
}

export type OriginRules = { allowedOrigins: readonly string[] }

type OriginHeaders = { origin: string | undefined; fetchSite: string | undefined; hasCookie: boolean }

/**
 * Before anything that changes something: a browser must say that the page is one of ours. SameSite=None lets any site send
 * the cookie, so only the exact origin keeps a foreign page from a signature.
 */
export function assertOrigin(rules: OriginRules, { origin, fetchSite, hasCookie }: OriginHeaders): void {
  if (origin !== undefined) {
    if (!rules.allowedOrigins.includes(origin)) throw notAllowed()
    return
  }
  // Without an Origin there is nothing to compare; and where a browser says it is a foreign page, cookies do not matter.
  if (hasCookie || (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none')) throw notAllowed()
}

/** Fetch Metadata: a navigation, but of a part of another page. */
const FRAMES: ReadonlySet<string> = new Set(['iframe', 'frame', 'fencedframe', 'object', 'embed'])

/**
 * Before a read is counted: any page can have a browser load any address, in an image, in a frame or ahead of a click, with the
 * cookies of the person who looks at that page, and at the cost of their limits. What a person opens passes, and what our own pages
 * read; a page that was refused ahead of a click is asked for again by the click. Callers that are no browsers say nothing of this.
 */
export function assertNotPlanted(rules: OriginRules, head: RequestHead): void {
  const origin = head.header('origin')
  if (isPublicPath(head.path) || (origin !== undefined && rules.allowedOrigins.includes(origin))) return
  const site = head.header('sec-fetch-site')
  const isNavigation = head.header('sec-fetch-mode') === 'navigate'
  const isPage = isNavigation && !FRAMES.has(head.header('sec-fetch-dest') ?? '')
  // What a page of this origin reads while it is opened ahead is not asked for again by the click.
  const isAhead = head.header('sec-purpose') !== undefined && (isNavigation || site !== 'same-origin')
  if ((site === 'cross-site' && !isPage) || isAhead) throw notAllowed()
}

const EXPOSED =
  'x-request-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, ratelimit-policy, etag'

/** The CORS headers of an answer: our pages with credentials, other pages only what is public, and without. */
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

/** What a preflight is answered, beside the headers above. Throws for origins that may not make that call. */
export function toPreflightHeaders(rules: OriginRules, preflight: Preflight): Record<string, string> {
  const { origin, path, requestedMethod } = preflight
  const cors = toCorsHeaders(rules, { origin, path, method: requestedMethod })
  if (cors['access-control-allow-origin'] === undefined) throw notAllowed()
  return {
    ...cors,
    'access-control-allow-methods': cors['access-control-allow-credentials'] === undefined ? 'GET' : 'GET, POST',
    'access-control-allow-headers': 'content-type, x-request-id, if-none-match, last-event-id',
    'access-control-max-age': '600',
  }
}

function notAllowed() {
  return new CoordinatorError('origin_not_allowed', 'the origin is not allowed')
}
