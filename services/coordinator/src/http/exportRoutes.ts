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

/** At one time, of one user and of all: each reads some megabytes of rows a second. */
const MAX_OF_USER = 2
const MAX_OF_ALL = 8
const RETRY_S = 30
/** What is expected of a caller, and how far it may be behind. One that trickles would hold its place for ever. */
const BYTES_PER_MS = 64
const PATIENCE_MS = 60_000
/** So far behind it loses its place to a user who has none, while all are taken. A few users could keep everybody else out. */
const YIELD_MS = 10_000

const HEADERS = {
  'content-type': 'application/vnd.ipld.car; version=1; order=unk; dups=y',
  'content-disposition': 'attachment; filename="proofs.car"',
}

/** A user's proofs, streamed: nothing is read before the caller has taken what is before it. */
export function registerExportRoutes(handlers: Handlers, deps: ExportRoutesDeps): void {
  const { exportProofs, limiters, getSignedIn, clock, schedule, log } = deps
  const running = new Set<Running>()

  function begin(userId: string): Running {
    const own = [...running].filter((one) => one.userId === userId)
    if (own.length === 0 && running.size >= MAX_OF_ALL) findSlowest()?.giveUp()
    if (own.length >= MAX_OF_USER || running.size >= MAX_OF_ALL) {
      throw new CoordinatorError('rate_limited', 'too many exports', { details: 'other exports are under way' })
    }
    const one: Running = { userId, stream: undefined }
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
    let one: Running
    try {
      one = begin(user.id)
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

  /** The answer has begun: all that is left is to cut it, and a file that was cut is not whole. */
  function report(error: unknown) {
    log.warn({ msg: 'Could not finish an export', ...toReason(error) })
  }
}

/** An export under way; its stream is there when the answer begins. */
type Running = { userId: string; stream: ExportStream | undefined }

type ExportStream = {
  body: globalThis.ReadableStream<Uint8Array<ArrayBuffer>>
  /** How far the caller is behind. */
  lagMs(): number
  /** Cuts it. */
  giveUp(): void
}

type StreamEnds = { end(): void; onFailure(error: unknown): void }

function toStream(
  chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  { clock, schedule, end, onFailure }: Pick<ExportRoutesDeps, 'clock' | 'schedule'> & StreamEnds,
): ExportStream {
  let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined
  /** Without the time since `givenAt`. */
  let behindMs = 0
  /** There while the caller reads; the time that we take ourselves is not the caller's. */
  let givenAt: number | undefined
  let isOver = false
  let cancelWait = () => {}

  const lagMs = () => behindMs + (givenAt === undefined ? 0 : clock.now() - givenAt)

  function finish() {
    isOver = true
    cancelWait()
    end()
  }

  function waitForCaller() {
    givenAt = clock.now()
    cancelWait = schedule(giveUp, Math.max(0, PATIENCE_MS - behindMs))
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
        givenAt = undefined
        try {
          const { done, value } = await chunks.next()
          // Cancelled meanwhile.
          if (isOver) return
          if (done) {
            finish()
            return controller.close()
          }
          controller.enqueue(value)
          // Nobody gets ahead: who has read fast may stop for no longer than others.
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

  function giveUp() {
    fail(new CoordinatorError('rate_limited', 'the caller read too slowly'))
    void chunks.return(undefined)
  }
  return { body: stream as globalThis.ReadableStream<Uint8Array<ArrayBuffer>>, lagMs, giveUp }
}
