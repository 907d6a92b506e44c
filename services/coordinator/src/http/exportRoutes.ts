import { ReadableStream } from 'node:stream/web'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { ExportProofs } from '../ports.ts'
import { toReason } from '../toReason.ts'
import { parseCursor } from '../wallet/listTransactions.ts'
import { addRoute, type HttpApp } from './addRoute.ts'
import type { Limiters } from './limiters.ts'
import { exportRoute } from './routes.ts'
import type { GetSignedIn } from './signedIn.ts'

export type ExportRoutesDeps = {
  exportProofs: ExportProofs
  limiters: Limiters
  getSignedIn: GetSignedIn
  log: Log
}

/** At one time, of one user and of all: each reads some megabytes of rows a second. */
const MAX_OF_USER = 2
const MAX_OF_ALL = 8
const RETRY_S = 30

const HEADERS = {
  'content-type': 'application/vnd.ipld.car; version=1; order=unk; dups=y',
  'content-disposition': 'attachment; filename="proofs.car"',
}

/** A user's proofs, streamed: nothing is read before the caller has taken what is before it. */
export function registerExportRoutes(app: HttpApp, deps: ExportRoutesDeps): void {
  const { exportProofs, limiters, getSignedIn, log } = deps
  /** Those under way. */
  const running = new Set<{ userId: string }>()

  function begin(userId: string): () => void {
    const own = [...running].filter((one) => one.userId === userId)
    if (own.length >= MAX_OF_USER || running.size >= MAX_OF_ALL) {
      throw new CoordinatorError('rate_limited', 'too many exports', { details: 'other exports are under way' })
    }
    const one = { userId }
    running.add(one)
    return () => void running.delete(one)
  }

  addRoute(app, exportRoute, async (c) => {
    const { user } = await getSignedIn(c, limiters.exports)
    const before = parseCursor(c.req.queries('cursor') ?? [])
    if (c.req.method === 'HEAD') return c.body(null, 200, HEADERS)
    let end: () => void
    try {
      end = begin(user.id)
    } catch (error) {
      c.header('retry-after', String(RETRY_S))
      throw error
    }
    try {
      const chunks = await exportProofs({ userId: user.id, before })
      return c.body(toStream(chunks, { end, onFailure: report }), 200, HEADERS)
    } catch (error) {
      end()
      throw error
    }
  })

  /** The answer has begun: all that is left is to cut it, and a file that was cut is not whole. */
  function report(error: unknown) {
    log.warn({ msg: 'Could not finish an export', ...toReason(error) })
  }
}

function toStream(
  chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  { end, onFailure }: { end(): void; onFailure(error: unknown): void },
): globalThis.ReadableStream<Uint8Array<ArrayBuffer>> {
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await chunks.next()
          if (!done) return controller.enqueue(value)
          end()
          controller.close()
        } catch (error) {
          end()
          onFailure(error)
          controller.error(error)
        }
      },
      async cancel() {
        end()
        await chunks.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
  return stream as globalThis.ReadableStream<Uint8Array<ArrayBuffer>>
}
