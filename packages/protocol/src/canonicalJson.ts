import canonicalize from 'canonicalize'
import { equalBytes } from './bytes.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { parseJson } from './parseJson.ts'
import { isPlainObject } from './plainObject.ts'

/** Much deeper than any document of ours, but safe for the stack. */
const MAX_DEPTH = 64

/** With the `u` flag, this matches only unpaired surrogates. */
const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * Encodes a value with the JSON Canonicalization Scheme (RFC 8785), in UTF-8. Rejects everything that JSON would silently drop or convert
 * (`undefined`, functions, dates, `NaN`), so that two different values never have the same bytes.
 *
 * @example
 * sha256(toCanonicalJson({ b: 1, a: [true, null] })) // over {"a":[true,null],"b":1}
 */
export function toCanonicalJson(value: unknown): Uint8Array<ArrayBuffer> {
  assertEncodable(value, [])
  return new TextEncoder().encode(canonicalize(value))
}

/**
 * Parses JSON that must already be canonical. Duplicate members, white space, another order or another form of a number could make two
 * readers of one hash see two documents.
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
    throw notCanonical('contains a value that canonical JSON cannot represent', cause)
  }
  if (!equalBytes(canonical, bytes)) throw notCanonical('not in canonical form')
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
    // An array has one own key per item, plus `length`. A hole reads as undefined, which is rejected below.
    const isPlain =
      Object.getPrototypeOf(value) === Array.prototype && Reflect.ownKeys(value).length === value.length + 1
    if (!isPlain) throw notCanonicalizable('not a plain array')
    for (const item of value) assertEncodable(item, ancestors)
  } else {
    if (!isPlainObject(value)) throw notCanonicalizable('not a plain object')
    for (const [name, member] of Object.entries(value)) {
      // Copying such a member by assignment would replace a prototype instead.
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
