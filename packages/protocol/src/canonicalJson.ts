import canonicalize from 'canonicalize'
import { equalBytes } from './bytes.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { parseJson } from './parseJson.ts'
import { isPlainObject } from './plainObject.ts'

/** Far above any document of ours, far below what would exhaust a stack. */
const MAX_DEPTH = 64

/** With the `u` flag a surrogate that has its partner is one character of another category. */
const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * The JSON Canonicalization Scheme (RFC 8785) of a value, as UTF-8. What JSON would drop or convert without a word
 * (`undefined`, functions, dates, `NaN`) is refused: two different values must never share their bytes.
 *
 * @example
 * sha256(toCanonicalJson({ b: 1, a: [true, null] })) // over {"a":[true,null],"b":1}
 */
export function toCanonicalJson(value: unknown): Uint8Array<ArrayBuffer> {
  assertEncodable(value, [])
  return new TextEncoder().encode(canonicalize(value))
}

/**
 * Reads bytes that must be in canonical form already. A document in any other spelling is refused: duplicate members, white
 * space, another order or another form of a number would let two readers of one hash see two documents.
 */
export function parseCanonicalJson(bytes: Uint8Array, { maxBytes }: { maxBytes: number }): unknown {
  if (!(bytes.length <= maxBytes)) throw notCanonical(`more than ${maxBytes} bytes`)
  let value: unknown
  try {
    value = parseJson(bytes)
  } catch (cause) {
    throw notCanonical('not JSON in UTF-8', cause)
  }
  let canonical: Uint8Array
  try {
    canonical = toCanonicalJson(value)
  } catch (cause) {
    throw notCanonical('holds what canonical JSON cannot carry', cause)
  }
  if (!equalBytes(canonical, bytes)) throw notCanonical('another spelling')
  return value
}

function assertEncodable(value: unknown, ancestors: object[]): void {
  if (value === null || typeof value === 'boolean') return
  if (typeof value === 'string') {
    if (LONE_SURROGATE.test(value)) throw notCanonicalizable('lone surrogate')
    return
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw notCanonicalizable(String(value))
    return
  }
  if (typeof value !== 'object') throw notCanonicalizable(typeof value)
  if (ancestors.includes(value)) throw notCanonicalizable('cycle')
  if (ancestors.length === MAX_DEPTH) throw notCanonicalizable(`more than ${MAX_DEPTH} levels`)
  ancestors.push(value)
  if (Array.isArray(value)) {
    // One own key for each item, and `length`. A hole reads as undefined, which is refused below.
    const isPlain =
      Object.getPrototypeOf(value) === Array.prototype && Reflect.ownKeys(value).length === value.length + 1
    if (!isPlain) throw notCanonicalizable('not a plain array')
    for (const item of value) assertEncodable(item, ancestors)
  } else {
    if (!isPlainObject(value)) throw notCanonicalizable('not a plain object')
    for (const [name, member] of Object.entries(value)) {
      // Code that copies such a member with an assignment replaces a prototype instead.
      if (name === '__proto__') throw notCanonicalizable('__proto__')
      assertEncodable(name, ancestors)
      assertEncodable(member, ancestors)
    }
  }
  ancestors.pop()
}

function notCanonicalizable(details: string) {
  return new ServiceError<ProtocolErrorCode>('not_canonicalizable', 'the value has no canonical JSON', { details })
}

function notCanonical(details: string, cause?: unknown) {
  return new ServiceError<ProtocolErrorCode>('json_not_canonical', 'expected canonical JSON', { details, cause })
}
