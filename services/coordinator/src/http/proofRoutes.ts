import { isSlug } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { ProofReader } from '../proofs/proofReader.ts'
import type { ProofView } from '../proofs/proofView.ts'
import { prefersHtml } from './accept.ts'
import type { RequestContext } from './context.ts'
import { type Limiters, limit } from './limiters.ts'
import { EVENT_HEADERS, type ProofEvents } from './proofEvents.ts'
import type { Handlers } from './router.ts'

export type ProofRoutesDeps = {
  proofReader: ProofReader
  proofEvents: ProofEvents
  limiters: Limiters
  /** The origin of the web app, whose page at the same path shows the proof. Undefined without a web app. */
  pageOrigin: string | undefined
}

/** The interval at which browsers reconnect. It is unknown when one of the address's streams will end. */
const STREAM_RETRY_S = 4
const RECEIPT_RETRY_S = 5

export function registerProofRoutes(handlers: Handlers, deps: ProofRoutesDeps): void {
  const { proofReader, proofEvents, limiters, pageOrigin } = deps

  /** A receipt that is only on IPFS may be readable again soon. */
  function retryLater(c: RequestContext, error: unknown): never {
    if (error instanceof CoordinatorError && error.code === 'receipt_unavailable') {
      c.header('retry-after', String(RECEIPT_RETRY_S))
    }
    throw error
  }
  /** Answers synchronously if the reader has the proof in memory, which is the usual case. */
  function read<Result>(c: RequestContext, slug: string, then: (view: ProofView) => Result): Result | Promise<Result> {
    const view = proofReader.read(slug)
    return view instanceof Promise ? view.then(then, (error: unknown) => retryLater(c, error)) : then(view)
  }

  handlers.set('GET /proof/:slug', (c) => {
    const { slug = '' } = c.params
    limit(c, limiters.proof)
    c.headers.vary = 'Accept'
    if (pageOrigin !== undefined && isSlug(slug) && prefersHtml(c.req.header('accept'))) {
      c.header('cache-control', 'no-cache')
      return c.redirect(`${pageOrigin}/proof/${slug}`)
    }
    return read(c, slug, ({ isFinal, latin1, version }) => {
      const etag = `"${version}"`
      c.headers.etag = etag
      // Until the event is final, a reorganization can move a complete proof, so caches must revalidate.
      c.headers['cache-control'] = isFinal ? 'public, max-age=3600' : 'no-cache'
      if (isMatch(c.req.header('if-none-match'), etag)) return { status: 304, body: null }
      c.headers['content-type'] = 'application/json'
      return { status: 200, body: latin1, encoding: 'latin1' }
    })
  })

  handlers.set('GET /proof/:slug/events', async (c) => {
    const { clientAddress: address, params } = c
    const { slug = '' } = params
    limit(c, limiters.proof)
    if (c.req.method === 'HEAD') {
      await read(c, slug, () => {})
      Object.assign(c.headers, EVENT_HEADERS)
      return { status: 200, body: null }
    }
    if (proofEvents.isFull(address)) {
      c.header('retry-after', String(STREAM_RETRY_S))
      throw new CoordinatorError('rate_limited', 'too many streams', { details: 'too many streams are open' })
    }
    const events = await proofEvents
      .open({ slug, address, lastEventId: c.req.header('last-event-id'), signal: c.getSignal() })
      .catch((error: unknown) => retryLater(c, error))
    if (events === undefined) return { status: 204, body: null }
    Object.assign(c.headers, EVENT_HEADERS)
    return { status: 200, body: events }
  })
}

/** RFC 9110 §13.1.2: `*`, or a list of tags to compare weakly. */
export function isMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
