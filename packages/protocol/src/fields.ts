import { type ProtocolErrorCode, ServiceError } from './errors.ts'

/**
 * Writes a byte string of fixed width. A preimage has no separators, so a field of another length would shift its neighbors, and two
 * different inputs could have the same hash.
 */
export function toField(name: string, bytes: Uint8Array, length: number): Uint8Array {
  if (!(bytes instanceof Uint8Array) || bytes.length !== length) {
    throw new ServiceError<ProtocolErrorCode>('invalid_length', `expected ${length} bytes`, { details: name })
  }
  return bytes
}

/** One byte. */
export function toU8(value: number): Uint8Array<ArrayBuffer> {
  if (!isNatural(value) || value > 0xff) throw invalidInteger('expected an integer from 0 to 255')
  return Uint8Array.of(value)
}

/** Four bytes, big-endian. */
export function toU32be(value: number): Uint8Array<ArrayBuffer> {
  if (!isNatural(value) || value > 0xffff_ffff) throw invalidInteger('expected an integer from 0 to 2^32 - 1')
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

/** Eight bytes, big-endian. The maximum is 2^53 - 1, because the value is a JSON number elsewhere. */
export function toU64be(value: number): Uint8Array<ArrayBuffer> {
  if (!isNatural(value)) throw invalidInteger('expected an integer from 0 to 2^53 - 1')
  const bytes = new Uint8Array(8)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, Math.floor(value / 2 ** 32))
  view.setUint32(4, value % 2 ** 32)
  return bytes
}

/** An integer from 0 to 2^53 - 1. Rejects -0, a second spelling of 0. */
export function isNatural(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && !Object.is(value, -0)
}

function invalidInteger(message: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_integer', message)
}

/** Whether a quorum is a reachable majority of the members. Two majorities always have a member in common. */
export function isMajority(quorum: unknown, count: number): quorum is number {
  return isNatural(quorum) && 2 * quorum > count && quorum <= count
}
