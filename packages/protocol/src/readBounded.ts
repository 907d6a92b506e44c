import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/** A body from `fetch` or from Node's streams. */
export type BodyStream = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | null | undefined

/**
 * Reads a body of at most `maxBytes`. It counts the bytes as they arrive, because `Content-Length` can be wrong. Above the limit, it cancels
 * the stream and throws a `ServiceError` with the code `body_too_large` (see `isBodyTooLarge`). Errors of the stream pass through.
 *
 * @example
 * const bytes = await readBounded(response.body, 65_536)
 */
export async function readBounded(body: BodyStream, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null || body === undefined) return new Uint8Array()
  const { next, cancel } = toReader(body)
  let bytes = new Uint8Array(0)
  let length = 0
  for (;;) {
    const { done, value } = await next()
    if (done === true) return length === bytes.length ? bytes : bytes.slice(0, length)
    const isBytes = isUint8Array(value)
    // Not `> maxBytes`, so that a limit of NaN rejects everything.
    if (!isBytes || !(length + value.length <= maxBytes)) {
      // Not awaited: the sender may never finish.
      cancel().catch(() => {})
      throw isBytes ? tooLarge(maxBytes) : new TypeError('a chunk of the stream is not bytes')
    }
    // Chunks are copied as they arrive, so a sender of single bytes uses no more memory than it sends.
    if (length + value.length > bytes.length) bytes = grow(bytes, Math.max(length + value.length, 2 * length))
    bytes.set(value, length)
    length += value.length
  }
}

/**
 * Whether this is `readBounded`'s error for a body above its limit.
 *
 * @example
 * if (isBodyTooLarge(error)) …
 */
export function isBodyTooLarge(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'body_too_large'
}

/** Not `instanceof`: under some test runners, `fetch` returns chunks from another realm. */
function isUint8Array(value: unknown): value is Uint8Array {
  return Object.prototype.toString.call(value) === '[object Uint8Array]'
}

function grow(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}

type Reader = { next(): Promise<{ done?: boolean | undefined; value?: unknown }>; cancel(): Promise<unknown> }

/** Uses the reader, because not every browser can iterate over a `ReadableStream`. */
function toReader(body: NonNullable<BodyStream>): Reader {
  if ('getReader' in body) {
    const reader = body.getReader()
    return { next: () => reader.read(), cancel: () => reader.cancel() }
  }
  const iterator = body[Symbol.asyncIterator]()
  return { next: () => iterator.next(), cancel: async () => iterator.return?.() }
}

function tooLarge(maxBytes: number) {
  const details = `more than ${maxBytes} bytes`
  return new ServiceError<ProtocolErrorCode>('body_too_large', 'the body is too large', { details })
}
