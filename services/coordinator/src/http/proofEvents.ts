import { isTerminalProofStatus } from '@countersign/protocol'
import type { ProofWatcher } from '../proofs/watchProof.ts'
import type { Schedule } from '../system.ts'
import { createEventStream, type EventStream } from './eventStream.ts'

export const EVENT_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  // nginx would keep events back until it has a buffer full of them.
  'x-accel-buffering': 'no',
}

/** Browsers themselves open no more than six connections to a host. */
const MAX_STREAMS = 5

export type ProofEvents = {
  /** Whether an address has as many streams open as it may. */
  isFull(address: string): boolean
  /** Undefined where the caller has seen the last event: there is nothing left to come back for. */
  open(parameters: {
    slug: string
    address: string
    lastEventId: string | undefined
    /** Of the request: a caller that is gone frees its place at once. */
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
      // It may have ended before there was a watch to end.
      if (stream.isClosed) unwatch()
      return isSeen ? undefined : stream.body
    },

    stop() {
      for (const stream of streams) stream.end()
      watcher.stop()
    },
  }
}
