import { CoordinatorError } from '../errors.ts'
import type { ProofReader } from '../proof/proofReader.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import { type Limiters, limit } from './limiters.ts'
import { EVENT_HEADERS, type ProofEvents } from './proofEvents.ts'
import { routes } from './routes.ts'

export type ProofRoutesDeps = { proofReader: ProofReader; proofEvents: ProofEvents; limiters: Limiters }

/** When a place among the streams of an address becomes free is unknown; this is when their browsers would retry. */
const STREAM_RETRY_S = 4

export function registerProofRoutes(app: HttpApp, deps: ProofRoutesDeps): void {
  const { proofReader, proofEvents, limiters } = deps

  addRoute(app, routes['GET /proof/:slug'], async (c) => {
    limit(c, limiters.proof)
    const { isFinal, body, version } = await proofReader.read(c.req.param('slug') ?? '')
    const etag = `"${version}"`
    c.header('etag', etag)
    // Until its event is final, a reorganisation may move a complete proof: a cache has to ask each time.
    c.header('cache-control', isFinal ? 'public, max-age=3600' : 'no-cache')
    if (isMatch(c.req.header('if-none-match'), etag)) return c.body(null, 304)
    return c.body(body, 200, { 'content-type': 'application/json' })
  })

  addRoute(app, routes['GET /proof/:slug/events'], async (c) => {
    limit(c, limiters.proof)
    const slug = c.req.param('slug') ?? ''
    const address = c.get('clientAddress') ?? ''
    if (c.req.method === 'HEAD') {
      await proofReader.read(slug)
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
