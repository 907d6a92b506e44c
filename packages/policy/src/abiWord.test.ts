import { type Hex, toHex } from '@countersign/protocol'
import { decodeAbiParameters, encodeAbiParameters } from 'viem'
import { describe, expect, test } from 'vitest'
import { createRandom } from '../../protocol/fuzz/random.ts'
import { decodeWord } from './abiWord.ts'
import type { ArgumentType } from './policy.ts'

const types: ArgumentType[] = [
  'address',
  'bool',
  'bytes32',
  ...Array.from({ length: 32 }, (_, index) => `uint${8 * (index + 1)}` as const),
]

describe('a word of calldata', () => {
  test.each(types)('%s: equals viem’s value if viem reads it and encodes it as this word again', (type) => {
    const random = createRandom(1)
    for (let run = 0; run < 100; run++) {
      const bytes = new Uint8Array(32)
      // From all zeros to all random: the padding is zero, nearly zero, or random.
      const filled = random.below(33)
      bytes.set(random.bytes(filled), 32 - filled)
      if (random.below(3) === 0) bytes.fill(0, 0, 31)
      const word = decodeWord(type, bytes)
      const expected = readWithViem(type, `0x${toHex(bytes)}`)
      expect({ type, word: String(word).toLowerCase() }).toEqual({ type, word: String(expected).toLowerCase() })
    }
  })

  test.each(types.filter((type) => type !== 'bytes32'))('%s: each dirty bit of the padding is refused', (type) => {
    const width = type === 'address' ? 20 : type === 'bool' ? 1 : Number(type.slice(4)) / 8
    for (let bit = 0; bit < 8 * (32 - width); bit++) {
      const word = new Uint8Array(32)
      word[bit >> 3] = 1 << (bit & 7)
      expect(decodeWord(type, word)).toBeUndefined()
    }
  })

  test('a bool is 0 or 1', () => {
    for (let value = 2; value < 256; value++) {
      const word = new Uint8Array(32)
      word[31] = value
      expect(decodeWord('bool', word)).toBeUndefined()
    }
  })

  test('rejects words of 31 and 33 bytes', () => {
    for (const type of types)
      for (const length of [0, 31, 33]) expect(decodeWord(type, new Uint8Array(length))).toBeUndefined()
  })
})

/** viem truncates or rejects a word with non-zero padding. Encoding its value again shows which. */
function readWithViem(type: ArgumentType, data: Hex): unknown {
  try {
    const [value] = decodeAbiParameters([{ type }], data)
    return encodeAbiParameters([{ type }], [value as never]) === data ? value : undefined
  } catch {
    return undefined
  }
}
