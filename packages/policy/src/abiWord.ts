import { toHex, toPrefixedHex } from '@countersign/protocol/core'
import type { ArgumentType } from './policy.ts'

const WORD_BYTES = 32

/**
 * Decodes a word of a static type: Solidity ABI, "Formal Specification of the Encoding". Undefined if the padding is not zero: some compilers
 * reject such a word and others truncate it, so readers could see different values.
 */
export function decodeWord(type: ArgumentType, word: Uint8Array): string | boolean | undefined {
  if (word.length !== WORD_BYTES) return undefined
  if (type === 'bytes32') return toPrefixedHex(word)
  const bytes = toValueBytes(type)
  const padding = WORD_BYTES - bytes
  if (word.subarray(0, padding).some((byte) => byte !== 0)) return undefined
  const value = toHex(word.subarray(padding))
  if (type === 'address') return `0x${value}`
  if (type !== 'bool') return BigInt(`0x${value}`).toString()
  return value === '00' || value === '01' ? value === '01' : undefined
}

function toValueBytes(type: Exclude<ArgumentType, 'bytes32'>): number {
  if (type === 'address') return 20
  return type === 'bool' ? 1 : Number(type.slice('uint'.length)) / 8
}
