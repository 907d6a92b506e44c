import { randomBytes } from 'node:crypto'
import { toCanonicalJson } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { packJson, toShared, unpackJson } from './packJson.ts'
import { packReceipt, unpackReceipt } from './packReceipt.ts'

const hex = (bytes: number) => randomBytes(bytes).toString('hex')

const values: readonly (readonly [string, unknown])[] = [
  ['constants', [null, true, false, {}, [], '', '0x', '0']],
  ['numbers', [0, 1, 127, 128, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER, -1, 1.5, 1e300, -0.25]],
  [
    'decimals',
    [
      '0',
      '00',
      '01',
      '10',
      '1000000000000000000',
      '340282366920938463463374607431768211456',
      '9'.repeat(80),
      `1${'0'.repeat(300)}`,
    ],
  ],
  [
    'hex',
    ['ab', 'AB', 'aB', 'abc', `0x${hex(20)}`, `0x${hex(20).toUpperCase()}`, '0xabc', hex(5_000), '0xzz', ` ${hex(20)}`],
  ],
  [
    'times',
    [
      '2025-01-02T03:04:05.678Z',
      '1969-12-31T23:59:59.999Z',
      '2025-02-30T03:04:05.678Z',
      '2025-01-02T03:04:05.67Z ',
      '+012025-01-02T03:04:05Z',
    ],
  ],
  ['CIDs', [toCid(randomBytes(8)), `${toCid(randomBytes(8))}a`, toCid(randomBytes(8)).toUpperCase()]],
  [
    'texts',
    ['ä “quoted” \u0000 \ud83d\ude00', 'transaction', 'address', 'constructor', 'x'.repeat(40), 'x'.repeat(40)],
  ],
  [
    'members',
    { type: 'kind', ['x'.repeat(20)]: 1, more: { ['x'.repeat(20)]: 'x'.repeat(20) }, '': '', '0x': 'off-chain' },
  ],
]

describe('packed JSON', () => {
  test.each(values)('gives the same again: %s', (_, value) => {
    expect(unpackJson(packJson(value))).toEqual(value)
    const shared = toShared(['x'.repeat(40), hex(16), 'short'])
    const known = [`0x${hex(20)}`, 'x'.repeat(20), 'ab', `0x${hex(20)}`]
    expect(unpackJson(packJson(value, known, shared), known, shared)).toEqual(value)
  })

  test('random JSON gives the same again', () => {
    const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T
    const known = Array.from({ length: 4 }, () => `0x${hex(32)}`)
    const shared = toShared(Array.from({ length: 200 }, () => hex(32)))
    const make = (depth: number): unknown => {
      const kind = Math.random()
      if (depth > 0 && kind < 0.3) return Array.from({ length: 4 }, () => make(depth - 1))
      if (depth > 0 && kind < 0.6)
        return Object.fromEntries(['type', 'x', hex(9)].map((name) => [name, make(depth - 1)]))
      return pick([
        ...known,
        ...shared.texts,
        ...(values.flatMap(([, value]) => Object.values(value as object)) as unknown[]),
      ])
    }
    for (let round = 0; round < 300; round++) {
      const value = make(4)
      expect(unpackJson(packJson(value, known, shared), known, shared)).toEqual(value)
    }
  })

  test('leaves out members that are undefined, as JSON does', () => {
    expect(unpackJson(packJson({ a: undefined, b: 1 }))).toEqual({ b: 1 })
  })

  test('what was stored before stays readable: the words keep their places', () => {
    const value = {
      type: 'countersign/signing/v2',
      kind: 'transaction',
      previous: '0x',
      address: 'UpToDate',
      to: '0xabcd',
    }
    expect(packJson(value).toString('hex')).toBe('040520442b3f66744273310902abcd')
  })

  test('truncated, longer or unknown bytes are refused', () => {
    const packed = packJson({ a: hex(40), b: [1, 2, 'x'.repeat(30)] })
    for (let length = 0; length < packed.length; length++) {
      expect(() => unpackJson(packed.subarray(0, length))).toThrow()
    }
    expect(() => unpackJson(Buffer.concat([packed, Buffer.of(0)]))).toThrow('left over')
    expect(() => unpackJson(Buffer.of(13, 5))).toThrow('not there')
    expect(() => unpackJson(Buffer.of(31))).toThrow()
  })

  test('a text that is known or was there before takes a few bytes', () => {
    const [long, other] = [hex(500), hex(500)]
    expect(packJson([long, long, other], [], toShared([other])).length).toBeLessThan(520)
    expect(packJson([long], [long]).length).toBeLessThan(8)
  })
})

const SIGNING = { tx_hash: randomBytes(32), digest: randomBytes(32), signature: randomBytes(65) }

describe('a stored receipt', () => {
  const receipt = { version: 'countersign-attestation/2', quote: hex(1_000), at: '2025-01-02T03:04:05.678Z' }
  test('that is canonical JSON takes about half, and is the same bytes again', () => {
    const bytes = Buffer.from(toCanonicalJson(receipt))
    const stored = packReceipt(bytes, SIGNING)
    expect(stored.length).toBeLessThan(0.55 * bytes.length)
    expect(bytes.equals(unpackReceipt(stored, SIGNING))).toBe(true)
  })

  test('leaves out what the row of its signing has', () => {
    const [digest, signature] = [SIGNING.digest, SIGNING.signature].map((bytes) => `0x${bytes.toString('hex')}`)
    const bytes = Buffer.from(toCanonicalJson({ digest, signature, of: SIGNING.tx_hash.toString('hex') }))
    const stored = packReceipt(bytes, SIGNING)
    expect(stored.length).toBeLessThan(50)
    expect(bytes.equals(unpackReceipt(stored, SIGNING))).toBe(true)
  })

  test.each([
    ['not canonical', ` ${JSON.stringify(receipt)}`],
    ['with two members of a name', '{"a":1,"a":1}'],
    ['no JSON', 'a receipt'],
    ['no text', '\u00ff\u00fe'],
    ['empty', ''],
  ])('that is %s is the same bytes again too', (_, text) => {
    const bytes = Buffer.from(text, 'latin1')
    expect(bytes.equals(unpackReceipt(packReceipt(bytes, SIGNING), SIGNING))).toBe(true)
  })
})
