import fc from 'fast-check'
import { toRlp } from 'viem'
import { describe, expect, test } from 'vitest'
import { toHex } from './hex.ts'
import { encodeRlp, type RlpItem, toScalar } from './rlp.ts'

const ascii = (text: string) => toHex(new TextEncoder().encode(text))

describe('RLP (Yellow Paper, appendix B)', () => {
  test('matches the examples of the Ethereum documentation', () => {
    expect(encodeRlp(ascii('dog'))).toBe('83646f67')
    expect(encodeRlp([ascii('cat'), ascii('dog')])).toBe('c88363617483646f67')
    expect(encodeRlp('')).toBe('80')
    expect(encodeRlp([])).toBe('c0')
    expect(encodeRlp('00')).toBe('00')
    expect(encodeRlp('0f')).toBe('0f')
    expect(encodeRlp('0400')).toBe('820400')
    expect(encodeRlp([[], [[]], [[], [[]]]])).toBe('c7c0c1c0c3c0c1c0')
    const lorem = 'Lorem ipsum dolor sit amet, consectetur adipisicing elit'
    expect(encodeRlp(ascii(lorem))).toBe(`b838${ascii(lorem)}`)
  })

  test('writes scalars without leading zeros', () => {
    const scalars = [0, 1, 127, 128, 255, 256, 0xfffff, 2n ** 64n, 2n ** 256n - 1n]
    expect(scalars.map(toScalar)).toEqual([
      ...['', '01', '7f', '80', 'ff', '0100', '0fffff', '010000000000000000'],
      'ff'.repeat(32),
    ])
  })

  test.each([0, 1, 54, 55, 56, 57, 255, 256, 257, 65535, 65536, 70000])(
    '%i bytes, as a string and in a list, match viem',
    (length) => {
      for (const value of ['7f', '80']) {
        const bytes = value.repeat(length)
        expect(`0x${encodeRlp(bytes)}`).toBe(toRlp(`0x${bytes}`, 'hex'))
        expect(`0x${encodeRlp([bytes, [bytes]])}`).toBe(toRlp([`0x${bytes}`, [`0x${bytes}`]], 'hex'))
      }
    },
  )

  test('any nesting matches viem', () => {
    const { item } = fc.letrec<{ item: RlpItem }>((tie) => ({
      item: fc.oneof(
        { maxDepth: 4 },
        fc.uint8Array({ maxLength: 70 }).map(toHex),
        fc.array(tie('item'), { maxLength: 5 }),
      ),
    }))
    type ViemItem = `0x${string}` | readonly ViemItem[]
    const toViem = (value: RlpItem): ViemItem => (typeof value === 'string' ? `0x${value}` : value.map(toViem))
    fc.assert(
      fc.property(item, (value) => {
        expect(`0x${encodeRlp(value)}`).toBe(toRlp(toViem(value), 'hex'))
      }),
      { numRuns: 300 },
    )
  })
})
