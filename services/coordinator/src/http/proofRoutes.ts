import { isSlug } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { ProofReader } from '../proofs/proofReader.ts'
import { prefersHtml } from './accept.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import type { RequestContext } from './context.ts'
import type { DirectRoute } from './directRoutes.ts'
import { type Limiters, limit } from './limiters.ts'
import { EVENT_HEADERS, type ProofEvents } from './proofEvents.ts'

export type ProofRoutesDeps = {
  proofReader: ProofReader
  proofEvents: ProofEvents
  limiters: Limiters
  /** The origin of the web app, whose page at the same path shows a proof to people; undefined without one. */
  pageOrigin: string | undefined
}

/** When a place among the streams of an address becomes free is unknown; this is when their browsers would retry. */
const STREAM_RETRY_S = 4
const RECEIPT_RETRY_S = 5

/** Returns the one that is asked for most. */
export function registerProofRoutes(app: HttpApp, deps: ProofRoutesDeps): DirectRoute {
  const { proofReader, proofEvents, limiters, pageOrigin } = deps

  /** One that is on IPFS alone may be readable again in a moment. */
  function retryLater(c: RequestContext, error: unknown): never {
    if (error instanceof CoordinatorError && error.code === 'receipt_unavailable') {
      c.header('retry-after', String(RECEIPT_RETRY_S))
    }
    throw error
  }
  const read = (c: RequestContext, slug: string) =>
    proofReader.read(slug).catch((error: unknown) => retryLater(c, error))

  async function getProof(c: RequestContext, slug: string) {
    limit(c, limiters.proof)
    c.header('vary', 'Accept')
    if (pageOrigin !== undefined && isSlug(slug) && prefersHtml(c.req.header('accept'))) {
      c.header('location', `${pageOrigin}/proof/${slug}`)
      c.header('cache-control', 'no-cache')
      return { status: 302, body: null } as const
    }
    const { isFinal, latin1, version } = await read(c, slug)
    const etag = `"${version}"`
    c.header('etag', etag)
    // Until its event is final, a reorganisation may move a complete proof: a cache has to ask each time.
    c.header('cache-control', isFinal ? 'public, max-age=3600' : 'no-cache')
    if (isMatch(c.req.header('if-none-match'), etag)) return { status: 304, body: null } as const
    c.header('content-type', 'application/json')
    return { status: 200, body: latin1, encoding: 'latin1' } as const
  }

  addRoute(app, 'GET /proof/:slug', async (c) => {
    const { status, body } = await getProof(c, c.req.param('slug') ?? '')
    return body === null ? c.body(null, status) : c.body(Buffer.from(body, 'latin1'), status)
  })

  addRoute(app, 'GET /proof/:slug/events', async (c) => {
    limit(c, limiters.proof)
    const slug = c.req.param('slug') ?? ''
    const address = c.get('clientAddress') ?? ''
    if (c.req.method === 'HEAD') {
      await read(c, slug)
      return c.body(null, 200, EVENT_HEADERS)
    }
    if (proofEvents.isFull(address)) {
      c.header('retry-after', String(STREAM_RETRY_S))
      throw new CoordinatorError('rate_limited', 'too many streams', { details: 'too many streams are open' })
    }
    const { signal } = c.req.raw
    const events = await proofEvents
      .open({ slug, address, lastEventId: c.req.header('last-event-id'), signal })
      .catch((error: unknown) => retryLater(c, error))
    return events === undefined ? c.body(null, 204) : c.body(events, 200, EVENT_HEADERS)
  })

  return {
    method: 'GET',
    isPath: (path) => PROOF_PATH.test(path),
    route: '/proof/:slug',
    handle: (c) => getProof(c, c.req.path.slice('/proof/'.length)),
  }
}

const PROOF_PATH = /^\/proof\/[A-Za-z0-9_-]{22}$/

/** RFC 9110 §13.1.2: a list of tags, compared weakly, or `*`. */
function isMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
