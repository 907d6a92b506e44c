import { createPrivateKey, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifyEd25519 } from './ed25519.ts'
import { fromHex } from './hex.ts'

// RFC 8032 §7.1, test 2.
const publicKey = fromHex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
const signature = fromHex(
  '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
)
const message = fromHex('72')

/** The order of the group: RFC 8032 §5.1. */
const L = 2n ** 252n + 27742317777372353535851937790883648493n

function toLittleEndian(value: bigint): Uint8Array<ArrayBuffer> {
  return fromHex(value.toString(16).padStart(64, '0')).reverse()
}

describe('Ed25519 (RFC 8032)', () => {
  test('§7.1: tests 1 to 3', () => {
    const cases = [
      [
        'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
        '',
      ],
      [
        '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
        '72',
      ],
      [
        'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
        'af82',
      ],
    ].map((texts) => texts.map(fromHex)) as [Uint8Array, Uint8Array, Uint8Array][]
    for (const [key, mark, text] of cases) expect(verifyEd25519(key, mark, text)).toBe(true)
  })

  test('accepts Node’s signatures, and rejects them after any changed bit', () => {
    const seed = Buffer.from('302e020100300506032b657004220420'.concat('4c'.repeat(32)), 'hex')
    const privateKey = createPrivateKey({ key: seed, format: 'der', type: 'pkcs8' })
    const jwk = privateKey.export({ format: 'jwk' })
    const key = Uint8Array.from(Buffer.from(jwk.x as string, 'base64url'))
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.nat(), (text, pick) => {
        const mark = Uint8Array.from(sign(null, text, privateKey))
        expect(verifyEd25519(key, mark, text)).toBe(true)
        const parts = [key, mark, text].map((part) => Uint8Array.from(part)) as [Uint8Array, Uint8Array, Uint8Array]
        const part = parts[pick % 3] as Uint8Array
        const at = (pick >> 2) % part.length
        part[at] = (part[at] as number) ^ (1 << (pick & 7))
        expect(verifyEd25519(...parts)).toBe(false)
      }),
      { numRuns: 40 },
    )
  })

  test('§5.1.7: rejects S + L, a second spelling', () => {
    const s = BigInt(`0x${Buffer.from(signature.slice(32)).reverse().toString('hex')}`)
    const second = Uint8Array.from([...signature.subarray(0, 32), ...toLittleEndian(s + L)])
    expect(verifyEd25519(publicKey, second, message)).toBe(false)
    expect(
      verifyEd25519(publicKey, Uint8Array.from([...signature.subarray(0, 32), ...toLittleEndian(s)]), message),
    ).toBe(true)
  })

  test('rejects keys of small order, for which one signature fits every message', () => {
    const identity = toLittleEndian(1n)
    const mark = Uint8Array.from([...identity, ...new Uint8Array(32)])
    for (const y of ['01', 'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', '00']) {
      expect(verifyEd25519(fromHex(y.padEnd(64, '0')), mark, message)).toBe(false)
    }
  })

  test('§5.1.3: rejects y = p + 1, a second spelling of 1', () => {
    const p = 2n ** 255n - 19n
    const mark = Uint8Array.from([...toLittleEndian(p + 1n), ...new Uint8Array(32)])
    expect(verifyEd25519(toLittleEndian(p + 1n), mark, message)).toBe(false)
  })

  test('never throws, for bytes of any length and for other values', () => {
    for (const length of [0, 31, 33, 63, 64, 65, 1000]) {
      const bytes = new Uint8Array(length)
      if (length !== 32) expect(verifyEd25519(bytes, signature, message)).toBe(false)
      if (length !== 64) expect(verifyEd25519(publicKey, bytes, message)).toBe(false)
    }
    for (const wrong of [undefined, null, 'aa', {}, 1] as unknown as Uint8Array[]) {
      expect(verifyEd25519(wrong, signature, message)).toBe(false)
      expect(verifyEd25519(publicKey, wrong, message)).toBe(false)
      expect(verifyEd25519(publicKey, signature, wrong)).toBe(false)
    }
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.uint8Array({ minLength: 64, maxLength: 64 }),
        (key, mark) => {
          expect(verifyEd25519(key, mark, message)).toBe(false)
        },
      ),
      { numRuns: 50 },
    )
  })
})
