import { CoordinatorError } from '../errors.ts'
import { type GetProofDeps, getProof } from '../proof/getProof.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import { type Limiters, limit } from './limiters.ts'
import { EVENT_HEADERS, type ProofEvents } from './proofEvents.ts'
import { routes } from './routes.ts'

export type ProofRoutesDeps = GetProofDeps & { proofEvents: ProofEvents; limiters: Limiters }

/** When a place among the streams of an address becomes free is unknown; this is when their browsers would retry. */
const STREAM_RETRY_S = 4

export function registerProofRoutes(app: HttpApp, deps: ProofRoutesDeps): void {
  const { proofEvents, limiters } = deps

  addRoute(app, routes['GET /proof/:slug'], async (c) => {
    limit(c, limiters.proof)
    const { status, body, version } = await getProof(deps, { slug: c.req.param('slug') ?? '' })
    const etag = `"${version}"`
    c.header('etag', etag)
    // A complete proof still changes when a reorganisation moves its event, so it is not cached for good.
    c.header('cache-control', status === 'complete' ? 'public, max-age=60' : 'no-cache')
    if (isMatch(c.req.header('if-none-match'), etag)) return c.body(null, 304)
    return c.body(body, 200, { 'content-type': 'application/json' })
  })

  addRoute(app, routes['GET /proof/:slug/events'], async (c) => {
    limit(c, limiters.proof)
    const slug = c.req.param('slug') ?? ''
    const address = c.get('clientAddress') ?? ''
    if (c.req.method === 'HEAD') {
      await getProof(deps, { slug })
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
}

/** RFC 9110 §13.1.2: a list of tags, compared weakly, or `*`. */
function isMatch(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
