import type { Schedule } from '../system.ts'

type ServerEvent = { id: string; event: string /** One line. */; data: string }

export type EventStream = {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly isClosed: boolean
  /** Replaces an event that has not been read yet. */
  send(event: ServerEvent): void
  /** Sends the pending event first. */
  end(): void
}

const HEARTBEAT_MS = 15_000
/** The SDK's poll interval. */
const RETRY_MS = 4000

/** Server-sent events (WHATWG HTML §9.2). Creates bytes only on demand, so a slow reader costs the memory of one event. */
export function createEventStream(parameters: { schedule: Schedule; onClose(): void }): EventStream {
  const { schedule, onClose } = parameters
  const encoder = new TextEncoder()
  let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined
  let newest: ServerEvent | undefined
  let preface = `retry: ${RETRY_MS}\n`
  /** Set while the reader waits for bytes. */
  let onWritten: (() => void) | undefined
  let isClosed = false
  let cancelHeartbeat = schedule(beat, HEARTBEAT_MS)

  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(given) {
        controller = given
      },
      pull() {
        return new Promise((resolve) => {
          onWritten = resolve
          flush()
        })
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  )

  function write(text: string) {
    controller?.enqueue(encoder.encode(text))
    onWritten?.()
    onWritten = undefined
  }

  function flush() {
    if (newest === undefined) return
    const { id, event, data } = newest
    newest = undefined
    write(`${preface}id: ${id}\nevent: ${event}\ndata: ${data}\n\n`)
    preface = ''
  }

  function beat() {
    // A client that isn't reading needs no heartbeat.
    if (onWritten !== undefined) write(':\n\n')
    cancelHeartbeat = schedule(beat, HEARTBEAT_MS)
  }

  function close() {
    if (isClosed) return
    isClosed = true
    newest = undefined
    cancelHeartbeat()
    onWritten?.()
    onClose()
  }

  return {
    body,
    get isClosed() {
      return isClosed
    },
    send(event) {
      if (isClosed) return
      newest = event
      if (onWritten !== undefined) flush()
    },
    end() {
      if (isClosed) return
      flush()
      controller?.close()
      close()
    },
  }
}
