import { isTerminalProofStatus } from '@countersign/protocol'
import type { ProofWatcher } from '../proofs/watchProof.ts'
import type { Schedule } from '../system.ts'
import { createEventStream, type EventStream } from './eventStream.ts'

export const EVENT_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  // Otherwise nginx buffers events until its buffer is full.
  'x-accel-buffering': 'no',
}

/** Per address. Browsers open at most six connections to a host. */
const MAX_STREAMS = 5

export type ProofEvents = {
  /** Whether an address has the maximum number of open streams. */
  isFull(address: string): boolean
  /** Returns undefined if the caller already has the last event, so that it stops reconnecting. */
  open(parameters: {
    slug: string
    address: string
    lastEventId: string | undefined
    /** The request's signal: the stream ends when the caller disconnects. */
    signal: AbortSignal
  }): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | undefined>
  stop(): void
}

/** The streams of `GET /proof/:slug/events`. */
export function createProofEvents(deps: { watcher: ProofWatcher; schedule: Schedule }): ProofEvents {
  const { watcher, schedule } = deps
  const streams = new Set<EventStream>()
  const counts = new Map<string, number>()

  function count(address: string, change: 1 | -1) {
    const next = (counts.get(address) ?? 0) + change
    if (next === 0) counts.delete(address)
    else counts.set(address, next)
  }

  return {
    isFull: (address) => (counts.get(address) ?? 0) >= MAX_STREAMS,

    async open({ slug, address, lastEventId, signal }) {
      let unwatch = () => {}
      let isSeen = false
      const stream = createEventStream({
        schedule,
        onClose() {
          count(address, -1)
          streams.delete(stream)
          signal.removeEventListener('abort', stream.end)
          unwatch()
        },
      })
      count(address, 1)
      streams.add(stream)
      signal.addEventListener('abort', stream.end)
      if (signal.aborted) stream.end()
      try {
        unwatch = await watcher.watch({
          slug,
          onView({ status, latin1, version }) {
            const isLast = isTerminalProofStatus(status)
            isSeen = isLast && version === lastEventId
            if (!isSeen) stream.send({ id: version, event: 'proof', data: Buffer.from(latin1, 'latin1').toString() })
            if (isLast) stream.end()
          },
        })
      } catch (error) {
        stream.end()
        throw error
      }
      // The stream may have ended before the watch began.
      if (stream.isClosed) unwatch()
      return isSeen ? undefined : stream.body
    },

    stop() {
      for (const stream of streams) stream.end()
      watcher.stop()
    },
  }
}
