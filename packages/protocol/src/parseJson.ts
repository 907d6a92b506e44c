import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/**
 * Parses JSON from an untrusted source: UTF-8 without a byte order mark (RFC 8259 §8.1), or decoded text. Throws a `ServiceError` with the
 * code `invalid_json`, without the parser's error, which quotes its input. The caller must limit the size and check the value's shape.
 */
export function parseJson(json: Uint8Array | string): unknown {
  try {
    // With `ignoreBOM`, the mark stays in the text and JSON.parse rejects it.
    return JSON.parse(
      typeof json === 'string' ? json : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json),
    )
  } catch {
    throw new ServiceError<ProtocolErrorCode>('invalid_json', 'not JSON in UTF-8')
  }
}
