import { secp256k1 } from '@noble/curves/secp256k1.js'
import fc from 'fast-check'
import { keccak256, recoverPublicKey as recoverWithViem } from 'viem'
import { privateKeyToAccount, publicKeyToAddress, sign } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { fromHex, type Hex, toHex } from './hex.ts'
import { isSignatureHex, parseSignature, recoverPublicKey, toAddress } from './signature.ts'

const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const word = (value: bigint) => value.toString(16).padStart(64, '0')
const make = (r: bigint, s: bigint, v: number) => fromHex(`${word(r)}${word(s)}${v.toString(16).padStart(2, '0')}`)
const anyDigest = fc.uint8Array({ minLength: 32, maxLength: 32 })
const anyKey = fc.bigInt({ min: 1n, max: n - 1n }).map((key): Hex => `0x${word(key)}`)

describe('signature', () => {
  test('reads r, s and v', () => {
    expect(parseSignature(make(1n, 2n, 27))).toEqual({ r: 1n, s: 2n, yParity: 0 })
    expect(parseSignature(make(2n, 1n, 28))).toEqual({ r: 2n, s: 1n, yParity: 1 })
    expect(parseSignature(make(n - 1n, n >> 1n, 28))).toEqual({ r: n - 1n, s: n >> 1n, yParity: 1 })
  })

  test('accepts the same signatures in hex', () => {
    const edges = [0n, 1n, n >> 1n, (n >> 1n) + 1n, n - 1n, n, n + 1n, 2n ** 256n - 1n].map((edge) => fc.constant(edge))
    const number = fc.oneof(...edges, fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }))
    fc.assert(
      fc.property(number, number, fc.constantFrom(0, 26, 27, 28, 29, 255), (r, s, v) => {
        const bytes = make(r, s, v)
        let isRead = true
        try {
          parseSignature(bytes)
        } catch {
          isRead = false
        }
        expect(isSignatureHex(toHex(bytes))).toBe(isRead)
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['r = 0', make(0n, 1n, 27)],
    ['r = n', make(n, 1n, 27)],
    ['r = 2^256 - 1', make(2n ** 256n - 1n, 1n, 27)],
    ['s = 0', make(1n, 0n, 27)],
    ['s one above the half', make(1n, (n >> 1n) + 1n, 27)],
    ['s = n - 1', make(1n, n - 1n, 27)],
    ['s = n', make(1n, n, 27)],
    ['s = n + 1', make(1n, n + 1n, 27)],
    ...[0, 1, 26, 29, 37, 255].map((v): [string, Uint8Array] => [`v = ${v}`, make(1n, 1n, v)]),
    ['nothing', new Uint8Array(0)],
    ['64 bytes', make(1n, 1n, 27).subarray(0, 64)],
    ['66 bytes', Uint8Array.from([...make(1n, 1n, 27), 0])],
    ['hex', toHex(make(1n, 1n, 27)) as unknown as Uint8Array],
    ['undefined', undefined as unknown as Uint8Array],
  ])('refuses %s', (_, signature) => {
    expect(() => parseSignature(signature)).toThrow(withCode('signature_malformed'))
    expect(() => recoverPublicKey(new Uint8Array(32), signature)).toThrow(withCode('signature_malformed'))
  })

  test('recovers the same key as viem, for viem’s signatures', async () => {
    await fc.assert(
      fc.asyncProperty(anyKey, anyDigest, async (privateKey, digest) => {
        const hash: Hex = `0x${toHex(digest)}`
        const signature = await sign({ hash, privateKey, to: 'hex' })
        const publicKey = recoverPublicKey(digest, fromHex(signature.slice(2)))
        expect(`0x${toHex(publicKey)}`).toBe(await recoverWithViem({ hash, signature }))
        expect(`0x${toHex(publicKey)}`).toBe(privateKeyToAccount(privateKey).publicKey)
        expect(toAddress(publicKey)).toBe(privateKeyToAccount(privateKey).address.toLowerCase())
      }),
      { numRuns: 60 },
    )
  })

  test('a wrong digest or v gives another key or none', async () => {
    const digest = fromHex('11'.repeat(32))
    const privateKey: Hex = `0x${'22'.repeat(32)}`
    const signature = fromHex((await sign({ hash: `0x${toHex(digest)}`, privateKey, to: 'hex' })).slice(2))
    const publicKey = toHex(recoverPublicKey(digest, signature))
    expect(`0x${publicKey}`).toBe(privateKeyToAccount(privateKey).publicKey)
    expect(toHex(recoverPublicKey(fromHex('33'.repeat(32)), signature))).not.toBe(publicKey)
    signature[64] = 55 - (signature[64] as number)
    expect(toHex(recoverPublicKey(digest, signature))).not.toBe(publicKey)
  })

  test('throws if r is the x coordinate of no point, or the key would be the point at infinity', () => {
    // 5^3 + 7 is not a square modulo p.
    expect(() => recoverPublicKey(new Uint8Array(32), make(5n, 1n, 27))).toThrow(withCode('signature_malformed'))
    // With R = G and s = digest: Q = (s·R - digest·G) / r = 0.
    const x = secp256k1.Point.BASE.toAffine().x
    const parity = Number(secp256k1.Point.BASE.toAffine().y & 1n)
    expect(() => recoverPublicKey(fromHex(word(9n)), make(x, 9n, 27 + parity))).toThrow(withCode('signature_malformed'))
  })

  test('rejects a digest of other than 32 bytes', () => {
    for (const length of [0, 31, 33, 64]) {
      expect(() => recoverPublicKey(new Uint8Array(length), make(1n, 1n, 27))).toThrow(withCode('invalid_length'))
    }
  })
})

describe('address', () => {
  const publicKey = secp256k1.getPublicKey(fromHex('22'.repeat(32)), false)

  test('is the end of keccak256 over the coordinates, in lower case', () => {
    expect(toAddress(publicKey)).toBe(publicKeyToAddress(`0x${toHex(publicKey)}`).toLowerCase())
    expect(toAddress(publicKey)).toBe(`0x${keccak256(publicKey.subarray(1)).slice(-40)}`)
  })

  const offCurve = Uint8Array.from(publicKey)
  offCurve[64] = (offCurve[64] as number) ^ 1
  test.each([
    ['a compressed key', secp256k1.getPublicKey(fromHex('22'.repeat(32)))],
    ['a key without its first byte', publicKey.subarray(1)],
    ['a key with another first byte', Uint8Array.from([6, ...publicKey.subarray(1)])],
    ['a point off the curve', offCurve],
    ['the point at infinity', new Uint8Array(65)],
    ['coordinates of zero', Uint8Array.from([4, ...new Uint8Array(64)])],
    ['nothing', new Uint8Array(0)],
    ['hex', toHex(publicKey) as unknown as Uint8Array],
  ])('refuses %s', (_, key) => {
    expect(() => toAddress(key)).toThrow(withCode('public_key_malformed'))
  })
})
