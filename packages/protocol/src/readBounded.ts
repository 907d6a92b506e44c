import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/** A body as `fetch` gives it, or as Node's streams do. */
export type BodyStream = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | null | undefined

/**
 * Reads a whole body of at most `maxBytes`, counted as it arrives: what a sender declares in `Content-Length` proves nothing.
 * At the bound it stops reading, cancels the stream, and throws a `ServiceError` with the code `body_too_large`, which
 * `isBodyTooLarge` tells from what the stream itself throws: that passes through.
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
    // Not `> maxBytes`: a bound that is NaN must not let everything through.
    if (!isBytes || !(length + value.length <= maxBytes)) {
      // Not awaited: a sender may never let go.
      cancel().catch(() => {})
      throw isBytes ? tooLarge(maxBytes) : new TypeError('the stream gives something other than bytes')
    }
    // Joined as they come: a sender of single bytes costs no more memory than what it sends.
    if (length + value.length > bytes.length) bytes = grow(bytes, Math.max(length + value.length, 2 * length))
    bytes.set(value, length)
    length += value.length
  }
}

/**
 * Whether an error is that of `readBounded` for a body beyond its bound.
 *
 * @example
 * if (isBodyTooLarge(error)) …
 */
export function isBodyTooLarge(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'body_too_large'
}

/** Not by `instanceof`: under some test runners the chunks of `fetch` are of another realm. */
function isUint8Array(value: unknown): value is Uint8Array {
  return Object.prototype.toString.call(value) === '[object Uint8Array]'
}

function grow(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}

type Reader = { next(): Promise<{ done?: boolean | undefined; value?: unknown }>; cancel(): Promise<unknown> }

/** Not every browser can iterate over a `ReadableStream`, so its reader is used where there is one. */
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
