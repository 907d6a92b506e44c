import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/**
 * Reads JSON that someone else wrote: UTF-8 without a byte order mark (RFC 8259 §8.1), or text that was decoded before. Throws a
 * `ServiceError` with the code `invalid_json`, without the parser's own error, which quotes what it read. Check the shape of the
 * value, and bound the bytes, yourself.
 */
export function parseJson(json: Uint8Array | string): unknown {
  try {
    // With `ignoreBOM` the mark stays in the text, and JSON.parse refuses it.
    return JSON.parse(
      typeof json === 'string' ? json : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json),
    )
  } catch {
    throw new ServiceError<ProtocolErrorCode>('invalid_json', 'not JSON in UTF-8')
  }
}
