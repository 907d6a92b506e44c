import { concatBytes, fromHex } from '@countersign/protocol/core'
import { sha384 } from '@noble/hashes/sha2.js'
import type { IssuerKey } from '../x509/encodeCertificate.ts'
import { toBigInt } from '../x509/encodeCertificate.ts'
import { bitString, constructed, integer, nullValue, objectIdentifier, sequence } from '../x509/encodeDer.ts'
import { derive } from './keys.ts'

/** The distance of each prime of a key from its starting point. */
export type PrimeOffsets = readonly [p: number, q: number]

export type RsaOptions = {
  offsets?: PrimeOffsets | undefined
  /** Whether its AlgorithmIdentifier includes the default `trailerField`, as those of AMD's ARK and ASK, but not its ASVK. */
  trailerField?: boolean
}

const PUBLIC_EXPONENT = 65537n
const MODULUS_BYTES = 512
const SALT_BYTES = 48

/**
 * An RSA-4096 key with RSASSA-PSS, SHA-384, MGF1 with SHA-384 and 48 bytes of salt, as AMD's root and intermediate keys.
 * Without `offsets` it searches for both primes, which takes a few seconds.
 */
export function createRsaKey(
  seed: string,
  label: string,
  { offsets, trailerField = true }: RsaOptions = {},
): IssuerKey {
  const { p, q } = derivePrimes(seed, label, offsets)
  const modulus = p * q
  const dp = invert(PUBLIC_EXPONENT, p - 1n)
  const dq = invert(PUBLIC_EXPONENT, q - 1n)
  const qInverse = invert(q, p)
  const publicKey = sequence(
    sequence(objectIdentifier('1.2.840.113549.1.1.1'), nullValue()),
    bitString(sequence(integer(modulus), integer(PUBLIC_EXPONENT))),
  )
  const saltKey = derive(seed, `${label} salt`, 48)
  return {
    publicKey,
    algorithm: pssAlgorithm(trailerField),
    sign: (message) => {
      // A salt from the key and the message keeps the signature a function of both.
      const hash = sha384(message)
      const salt = sha384(concatBytes(saltKey, hash))
      const encoded = toBigInt(encodePss(hash, salt))
      // RFC 8017 §5.1.2, step 2.b: the Chinese remainder theorem.
      const m1 = power(encoded % p, dp, p)
      const m2 = power(encoded % q, dq, q)
      const h = ((((m1 - m2) % p) + p) * qInverse) % p
      return fromHex((m2 + q * h).toString(16).padStart(2 * MODULUS_BYTES, '0'))
    },
  }
}

/** RFC 4055 §3.1. */
function pssAlgorithm(trailerField: boolean) {
  const hash = sequence(objectIdentifier('2.16.840.1.101.3.4.2.2'), nullValue())
  const mask = sequence(objectIdentifier('1.2.840.113549.1.1.8'), hash)
  return sequence(
    objectIdentifier('1.2.840.113549.1.1.10'),
    sequence(
      constructed(0, hash),
      constructed(1, mask),
      constructed(2, integer(SALT_BYTES)),
      ...(trailerField ? [constructed(3, integer(1))] : []),
    ),
  )
}

/** EMSA-PSS-ENCODE of RFC 8017 §9.1.1, with emBits = 4095. */
function encodePss(hash: Uint8Array, salt: Uint8Array): Uint8Array {
  const digest = sha384(concatBytes(new Uint8Array(8), hash, salt))
  const block = new Uint8Array(MODULUS_BYTES - digest.length - 1)
  block[block.length - salt.length - 1] = 0x01
  block.set(salt, block.length - salt.length)
  const mask = generateMask(digest, block.length)
  const masked = block.map((byte, index) => byte ^ (mask[index] ?? 0))
  masked[0] = (masked[0] ?? 0) & 0x7f
  return concatBytes(masked, digest, Uint8Array.of(0xbc))
}

/** MGF1 of RFC 8017 §B.2.1 with SHA-384. */
function generateMask(seed: Uint8Array, length: number): Uint8Array {
  const blocks: Uint8Array[] = []
  for (let counter = 0; counter * 48 < length; counter++) {
    blocks.push(sha384(concatBytes(seed, Uint8Array.of(0, 0, counter >> 8, counter & 0xff))))
  }
  return concatBytes(...blocks).subarray(0, length)
}

/** The two primes of a key: each the first usable one at or above a point that the seed fixes, or the one at `offsets`. */
export function derivePrimes(seed: string, label: string, offsets?: PrimeOffsets): { p: bigint; q: bigint } {
  const [p, q] = (['p', 'q'] as const).map((name, index) => {
    const start = primeStart(seed, `${label} ${name}`)
    return start + BigInt(offsets?.[index] ?? findPrimeOffset(start))
  })
  return { p: p ?? 0n, q: q ?? 0n }
}

/** What `derivePrimes` finds without offsets, to be stored for a seed that is used often. */
export function findPrimeOffsets(seed: string, label: string): PrimeOffsets {
  return [findPrimeOffset(primeStart(seed, `${label} p`)), findPrimeOffset(primeStart(seed, `${label} q`))]
}

/** 2048 bits, odd, with the two top bits set, so that the product of two has 4096 bits. */
function primeStart(seed: string, label: string): bigint {
  return toBigInt(derive(seed, label, 256)) | (3n << 2046n) | 1n
}

/**
 * The distance to the first prime p with gcd(p − 1, 65537) = 1. A sieve over the residues of `start` modulo small primes
 * leaves about one candidate in fifteen for Miller–Rabin.
 */
function findPrimeOffset(start: bigint): number {
  const sieve = smallPrimes(20_000).map((prime) => ({ prime, residue: Number(start % BigInt(prime)) }))
  for (let offset = 0; ; offset += 2) {
    if (sieve.some(({ prime, residue }) => (residue + offset) % prime === 0)) continue
    const candidate = start + BigInt(offset)
    if (candidate % PUBLIC_EXPONENT !== 1n && isProbablePrime(candidate)) return offset
  }
}

function smallPrimes(limit: number): number[] {
  const isComposite = new Uint8Array(limit)
  const primes: number[] = []
  for (let number = 3; number < limit; number += 2) {
    if (isComposite[number] === 1) continue
    primes.push(number)
    for (let multiple = number * number; multiple < limit; multiple += 2 * number) isComposite[multiple] = 1
  }
  return primes
}

/**
 * Miller–Rabin with the first eight primes as bases. For random numbers of this size one round errs with a probability
 * below 2⁻⁹⁰ (Damgård, Landrock and Pomerance), and nobody chooses these numbers to deceive it.
 */
export function isProbablePrime(number: bigint): boolean {
  let odd = number - 1n
  let twos = 0
  while ((odd & 1n) === 0n) {
    odd >>= 1n
    twos++
  }
  return [2n, 3n, 5n, 7n, 11n, 13n, 17n, 19n].every((base) => {
    let value = power(base, odd, number)
    if (value === 1n || value === number - 1n) return true
    for (let round = 1; round < twos; round++) {
      value = (value * value) % number
      if (value === number - 1n) return true
    }
    return false
  })
}

/** Left-to-right exponentiation with a window of four bits. */
function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  const table = [1n]
  for (let index = 1; index < 16; index++) table.push(((table[index - 1] ?? 1n) * base) % modulus)
  let result = 1n
  for (const digit of exponent.toString(16)) {
    for (let square = 0; square < 4; square++) result = (result * result) % modulus
    if (digit !== '0') result = (result * (table[Number.parseInt(digit, 16)] ?? 1n)) % modulus
  }
  return result
}

/** The inverse of `value` modulo `modulus`, by the extended Euclidean algorithm. */
function invert(value: bigint, modulus: bigint): bigint {
  let [remainder, next] = [modulus, value % modulus]
  let [coefficient, nextCoefficient] = [0n, 1n]
  while (next !== 0n) {
    const quotient = remainder / next
    ;[remainder, next] = [next, remainder - quotient * next]
    ;[coefficient, nextCoefficient] = [nextCoefficient, coefficient - quotient * nextCoefficient]
  }
  return ((coefficient % modulus) + modulus) % modulus
}
