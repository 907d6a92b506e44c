import { ReadableStream, type ReadableStreamDefaultController } from 'node:stream/web'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { Clock, ExportProofs, Schedule } from '../ports.ts'
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
  clock: Clock
  schedule: Schedule
  log: Log
}

/** At one time, of one user and of all: each reads some megabytes of rows a second. */
const MAX_OF_USER = 2
const MAX_OF_ALL = 8
const RETRY_S = 30
/** What a caller may take for reading: so long for nothing, and more for each byte. One that trickles would hold its place for ever. */
const PATIENCE_MS = 60_000
const BYTES_PER_MS = 64

const HEADERS = {
  'content-type': 'application/vnd.ipld.car; version=1; order=unk; dups=y',
  'content-disposition': 'attachment; filename="proofs.car"',
}

/** A user's proofs, streamed: nothing is read before the caller has taken what is before it. */
export function registerExportRoutes(app: HttpApp, deps: ExportRoutesDeps): void {
  const { exportProofs, limiters, getSignedIn, clock, schedule, log } = deps
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
      return c.body(toStream(chunks, { clock, schedule, end, onFailure: report }), 200, HEADERS)
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

type StreamEnds = { end(): void; onFailure(error: unknown): void }

function toStream(
  chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  { clock, schedule, end, onFailure }: Pick<ExportRoutesDeps, 'clock' | 'schedule'> & StreamEnds,
): globalThis.ReadableStream<Uint8Array<ArrayBuffer>> {
  /** What is left of it while the caller reads; the time that we take ourselves is not the caller's. */
  let patienceMs = PATIENCE_MS
  let isOver = false
  let givenAt = clock.now()
  let cancelWait = () => {}

  function finish() {
    isOver = true
    cancelWait()
    end()
  }

  function waitForCaller(onLate: () => void) {
    givenAt = clock.now()
    cancelWait = schedule(onLate, Math.max(0, patienceMs))
  }

  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(controller) {
        waitForCaller(() => void giveUp(controller))
      },
      async pull(controller) {
        cancelWait()
        patienceMs -= clock.now() - givenAt
        try {
          const { done, value } = await chunks.next()
          // Cancelled meanwhile.
          if (isOver) return
          if (done) {
            finish()
            return controller.close()
          }
          controller.enqueue(value)
          patienceMs += value.length / BYTES_PER_MS
          waitForCaller(() => void giveUp(controller))
        } catch (error) {
          fail(controller, error)
        }
      },
      async cancel() {
        finish()
        await chunks.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )

  function fail(controller: ReadableStreamDefaultController, error: unknown) {
    if (isOver) return
    finish()
    onFailure(error)
    controller.error(error)
  }

  async function giveUp(controller: ReadableStreamDefaultController) {
    fail(controller, new CoordinatorError('rate_limited', 'the caller read too slowly'))
    await chunks.return(undefined)
  }
  return stream as globalThis.ReadableStream<Uint8Array<ArrayBuffer>>
}
