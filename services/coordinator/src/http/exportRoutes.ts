import { ReadableStream, type ReadableStreamDefaultController } from 'node:stream/web'
import type { Log } from '@countersign/service'
import { parseCursor } from '../accounts/wallet.ts'
import { CoordinatorError } from '../errors.ts'
import type { ExportProofs } from '../proofs/export/exportCar.ts'
import type { Clock, Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { toQuery } from './context.ts'
import type { Limiters } from './limiters.ts'
import type { Handlers } from './router.ts'
import type { GetSignedIn } from './signedIn.ts'

export type ExportRoutesDeps = {
  exportProofs: ExportProofs
  limiters: Limiters
  getSignedIn: GetSignedIn
  clock: Clock
  schedule: Schedule
  log: Log
}

/** Limits on concurrent exports per user and in total. Each export reads some megabytes of rows per second. */
const MAX_OF_USER = 2
const MAX_OF_ALL = 8
const RETRY_S = 30
/** The minimum reading speed, and how far a caller may fall behind it. Without it, a slow caller could keep an export open without limit. */
const BYTES_PER_MS = 64
const PATIENCE_MS = 60_000
/**
 * While all exports are in use, one that is this far behind can lose its place to a user without one. Otherwise a few users could block all
 * others.
 */
const YIELD_MS = 10_000

const HEADERS = {
  'content-type': 'application/vnd.ipld.car; version=1; order=unk; dups=y',
  'content-disposition': 'attachment; filename="proofs.car"',
}

/** Streams a user's proofs. Reads the next rows only after the caller has accepted the previous ones. */
export function registerExportRoutes(handlers: Handlers, deps: ExportRoutesDeps): void {
  const { exportProofs, limiters, getSignedIn, clock, schedule, log } = deps
  const running = new Set<RunningExport>()

  function reserve(userId: string): RunningExport {
    const own = [...running].filter((one) => one.userId === userId)
    if (own.length === 0 && running.size >= MAX_OF_ALL) findSlowest()?.abort()
    if (own.length >= MAX_OF_USER || running.size >= MAX_OF_ALL) {
      throw new CoordinatorError('rate_limited', 'too many exports', { details: 'other exports are running' })
    }
    const one: RunningExport = { userId, stream: undefined }
    running.add(one)
    return one
  }

  function findSlowest(): ExportStream | undefined {
    const streams = [...running].flatMap(({ stream }) => stream ?? [])
    const [slowest] = streams.toSorted((one, other) => other.lagMs() - one.lagMs())
    return slowest !== undefined && slowest.lagMs() >= YIELD_MS ? slowest : undefined
  }

  handlers.set('GET /proofs/export', async (c) => {
    const { user } = await getSignedIn(c, limiters.exports)
    const before = parseCursor(toQuery(c.req).getAll('cursor'))
    if (c.req.method === 'HEAD') {
      Object.assign(c.headers, HEADERS)
      return { status: 200, body: null }
    }
    let one: RunningExport
    try {
      one = reserve(user.id)
    } catch (error) {
      c.header('retry-after', String(RETRY_S))
      throw error
    }
    const end = () => void running.delete(one)
    try {
      const chunks = await exportProofs({ userId: user.id, before })
      one.stream = toStream(chunks, { clock, schedule, end, onFailure: report })
      Object.assign(c.headers, HEADERS)
      return { status: 200, body: one.stream.body }
    } catch (error) {
      end()
      throw error
    }
  })

  /** The response has already started, so it can only be cut short. Callers recognize an incomplete file. */
  function report(error: unknown) {
    log.warn({ msg: 'Could not finish an export', ...toReason(error) })
  }
}

/** An export in progress. `stream` is set when the response starts. */
type RunningExport = { userId: string; stream: ExportStream | undefined }

type ExportStream = {
  body: globalThis.ReadableStream<Uint8Array<ArrayBuffer>>
  /** How far the caller has fallen behind. */
  lagMs(): number
  /** Cuts the response short. */
  abort(): void
}

type StreamEnds = { end(): void; onFailure(error: unknown): void }

function toStream(
  chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  { clock, schedule, end, onFailure }: Pick<ExportRoutesDeps, 'clock' | 'schedule'> & StreamEnds,
): ExportStream {
  let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined
  /** Without the time since `sentAt`. */
  let behindMs = 0
  /** Set while the caller reads. The time that the service takes to produce a chunk doesn't count. */
  let sentAt: number | undefined
  let isOver = false
  let cancelWait = () => {}

  const lagMs = () => behindMs + (sentAt === undefined ? 0 : clock.now() - sentAt)

  function finish() {
    isOver = true
    cancelWait()
    end()
  }

  function waitForCaller() {
    sentAt = clock.now()
    cancelWait = schedule(abort, Math.max(0, PATIENCE_MS - behindMs))
  }

  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(given) {
        controller = given
        waitForCaller()
      },
      async pull(controller) {
        cancelWait()
        behindMs = lagMs()
        sentAt = undefined
        try {
          const { done, value } = await chunks.next()
          // The caller cancelled in the meantime.
          if (isOver) return
          if (done) {
            finish()
            return controller.close()
          }
          controller.enqueue(value)
          // Not below 0: a fast reader earns no credit for a longer pause later.
          behindMs = Math.max(0, behindMs - value.length / BYTES_PER_MS)
          waitForCaller()
        } catch (error) {
          fail(error)
        }
      },
      async cancel() {
        finish()
        await chunks.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )

  function fail(error: unknown) {
    if (isOver) return
    finish()
    onFailure(error)
    controller?.error(error)
  }

  function abort() {
    fail(new CoordinatorError('rate_limited', 'the caller read too slowly'))
    void chunks.return(undefined)
  }
  return { body: stream as globalThis.ReadableStream<Uint8Array<ArrayBuffer>>, lagMs, abort }
}
