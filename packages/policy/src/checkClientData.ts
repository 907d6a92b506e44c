import {
  type ClientDataReason,
  isPlainObject,
  MAX_CLIENT_DATA_BYTES,
  parseStrictJson,
} from '@countersign/protocol/core'

/**
 * Why client data are not valid for an approval, or undefined: WebAuthn §7.2, steps 10 to 14, over the raw bytes that the signature covers.
 * Unknown members are ignored: §5.8.1 lets browsers add some. That section reserves `tokenBinding`; other verifiers reject it in a form that
 * Level 2 does not define.
 */
export function checkClientData(
  bytes: Uint8Array,
  expected: { challenge: Uint8Array; origins: readonly string[] },
): ClientDataReason | undefined {
  let data: unknown
  try {
    data = parseStrictJson(bytes, { maxLength: MAX_CLIENT_DATA_BYTES })
  } catch {
    return 'client_data_malformed'
  }
  if (!isPlainObject(data) || !isWellFormed(data)) return 'client_data_malformed'
  const member = (name: string) => (Object.hasOwn(data, name) ? data[name] : undefined)
  if (!isTokenBinding(member('tokenBinding'))) return 'client_data_malformed'
  if (member('type') !== 'webauthn.get') return 'client_data_type'
  if (member('challenge') !== toBase64Url(expected.challenge)) return 'challenge_mismatch'
  if (!expected.origins.some((origin) => origin === member('origin'))) return 'origin_not_allowed'
  const crossOrigin = member('crossOrigin')
  const isFramed = (crossOrigin !== undefined && crossOrigin !== false) || Object.hasOwn(data, 'topOrigin')
  return isFramed ? 'cross_origin' : undefined
}

/** With the `u` flag, a surrogate pair is one character of another category, so this matches only unpaired surrogates. */
const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * Whether every name and string in it is valid Unicode. JSON can escape an unpaired surrogate, which has no UTF-8 form. Parsers keep, replace
 * or reject it, and with a replacement two names can become equal.
 */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return !LONE_SURROGATE.test(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).flat().every(isWellFormed)
}

/** WebAuthn Level 2, §5.8.1. */
function isTokenBinding(value: unknown): boolean {
  if (value === undefined) return true
  const status = isPlainObject(value) && Object.hasOwn(value, 'status') ? value.status : undefined
  return status === 'present' || status === 'supported'
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** RFC 4648 §5, without padding. Compared as text, so unused bits must be zero. */
function toBase64Url(bytes: Uint8Array): string {
  let text = ''
  for (let index = 0; index < bytes.length; index += 3) {
    const [one = 0, two = 0, three = 0] = bytes.subarray(index, index + 3)
    const digits = [one >> 2, ((one & 3) << 4) | (two >> 4), ((two & 15) << 2) | (three >> 6), three & 63]
    const count = Math.min(4, bytes.length - index + 1)
    for (const digit of digits.slice(0, count)) text += DIGITS.charAt(digit)
  }
  return text
}
