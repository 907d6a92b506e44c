import fc from 'fast-check'
import { toRlp } from 'viem'
import { describe, expect, test } from 'vitest'
import { toHex } from './hex.ts'
import { encodeRlp, type RlpItem, toScalar } from './rlp.ts'

const ascii = (text: string) => new TextEncoder().encode(text)

describe('RLP (Yellow Paper, appendix B)', () => {
  test('the examples of the Ethereum documentation', () => {
    expect(toHex(encodeRlp(ascii('dog')))).toBe('83646f67')
    expect(toHex(encodeRlp([ascii('cat'), ascii('dog')]))).toBe('c88363617483646f67')
    expect(toHex(encodeRlp(new Uint8Array(0)))).toBe('80')
    expect(toHex(encodeRlp([]))).toBe('c0')
    expect(toHex(encodeRlp(Uint8Array.of(0)))).toBe('00')
    expect(toHex(encodeRlp(Uint8Array.of(0x0f)))).toBe('0f')
    expect(toHex(encodeRlp(Uint8Array.of(4, 0)))).toBe('820400')
    expect(toHex(encodeRlp([[], [[]], [[], [[]]]]))).toBe('c7c0c1c0c3c0c1c0')
    const lorem = 'Lorem ipsum dolor sit amet, consectetur adipisicing elit'
    expect(toHex(encodeRlp(ascii(lorem)))).toBe(`b838${toHex(ascii(lorem))}`)
  })

  test('scalars have no leading zeros', () => {
    const scalars = [0, 1, 127, 128, 255, 256, 0xfffff, 2n ** 64n, 2n ** 256n - 1n]
    expect(scalars.map((value) => toHex(toScalar(value)))).toEqual([
      ...['', '01', '7f', '80', 'ff', '0100', '0fffff', '010000000000000000'],
      'ff'.repeat(32),
    ])
  })

  test.each([0, 1, 54, 55, 56, 57, 255, 256, 257, 65535, 65536, 70000])(
    '%i bytes, alone and in a list, as viem has them',
    (length) => {
      for (const value of [0x7f, 0x80]) {
        const bytes = new Uint8Array(length).fill(value)
        expect(`0x${toHex(encodeRlp(bytes))}`).toBe(toRlp(bytes, 'hex'))
        expect(`0x${toHex(encodeRlp([bytes, [bytes]]))}`).toBe(toRlp([bytes, [bytes]], 'hex'))
      }
    },
  )

  test('any nesting, as viem has it', () => {
    const { item } = fc.letrec<{ item: RlpItem }>((tie) => ({
      item: fc.oneof({ maxDepth: 4 }, fc.uint8Array({ maxLength: 70 }), fc.array(tie('item'), { maxLength: 5 })),
    }))
    fc.assert(
      fc.property(item, (value) => {
        expect(`0x${toHex(encodeRlp(value))}`).toBe(toRlp(value as Parameters<typeof toRlp>[0], 'hex'))
      }),
      { numRuns: 300 },
    )
  })
})
