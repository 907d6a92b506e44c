import { concatBytes, fromHex } from '@countersign/protocol/core'

/*
 * A DER writer (ITU-T X.690) for the simulated certificates. Every function returns a complete
 * tag-length-value.
 */

export type Bytes = Uint8Array<ArrayBuffer>

/** X.690 §8.1: one tag byte, a definite length in its shortest form (§10.1), the contents. */
export function encode(tag: number, ...contents: readonly Uint8Array[]): Bytes {
  const body = concatBytes(...contents)
  return concatBytes(Uint8Array.of(tag, ...lengthOctets(body.length)), body)
}

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length]
  const octets: number[] = []
  for (let rest = length; rest > 0; rest >>>= 8) octets.unshift(rest & 0xff)
  return [0x80 | octets.length, ...octets]
}

export const boolean = (value: boolean) => encode(0x01, Uint8Array.of(value ? 0xff : 0))
export const bitString = (bytes: Uint8Array, unusedBits = 0) => encode(0x03, Uint8Array.of(unusedBits), bytes)
export const octetString = (bytes: Uint8Array) => encode(0x04, bytes)
export const nullValue = () => encode(0x05)
export const enumerated = (value: number) => encode(0x0a, Uint8Array.of(value))
export const utf8String = (text: string) => encode(0x0c, new TextEncoder().encode(text))
export const printableString = (text: string) => encode(0x13, new TextEncoder().encode(text))
export const ia5String = (text: string) => encode(0x16, new TextEncoder().encode(text))
export const sequence = (...parts: readonly Uint8Array[]) => encode(0x30, ...parts)
export const set = (...parts: readonly Uint8Array[]) => encode(0x31, ...parts)
/** `[number] EXPLICIT`, or an implicitly tagged constructed value when given its contents. */
export const constructed = (number: number, ...parts: readonly Uint8Array[]) => encode(0xa0 | number, ...parts)
/** `[number] IMPLICIT` of a primitive type. */
export const primitive = (number: number, contents: Uint8Array) => encode(0x80 | number, contents)

/** X.690 §8.3, for values that are not negative: the shortest octets with a clear top bit. */
export function integer(value: bigint | number): Bytes {
  const digits = value.toString(16)
  const magnitude = fromHex(digits.length % 2 === 0 ? digits : `0${digits}`)
  return (magnitude[0] ?? 0) < 0x80 ? encode(0x02, magnitude) : encode(0x02, Uint8Array.of(0), magnitude)
}

/** X.690 §8.19. */
export function objectIdentifier(dotted: string): Bytes {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const octets = [first * 40 + second, ...rest].flatMap(base128)
  return encode(0x06, Uint8Array.from(octets))
}

function base128(value: number): number[] {
  const octets = [value & 0x7f]
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) octets.unshift(0x80 | (rest & 0x7f))
  return octets
}

/** RFC 5280 §4.1.2.5: UTCTime through the year 2049, GeneralizedTime from 2050 on, always to the second and in Z. */
export function time(date: Date): Bytes {
  const digits = date.toISOString().replace(/\.\d+|[^\d]/g, '')
  const isUtcTime = date.getUTCFullYear() < 2050
  return encode(isUtcTime ? 0x17 : 0x18, new TextEncoder().encode(`${isUtcTime ? digits.slice(2) : digits}Z`))
}
