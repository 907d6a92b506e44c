import { isHex } from '@countersign/protocol/core'
import type { BudgetCounter } from './countSpends.ts'

/** The counted payments and the revoked keys of one vault: a row of the table whose root is in the log. */
export type VaultState = {
  /** 16 bytes of hex. */
  keyId: string
  /** 16 random bytes of hex, so that the leaf of a small state can't be guessed. */
  random: string
  /** Counts the changes, from 1. */
  sequence: number
  /** Bit `i` is the approver with index `i`. */
  revoked: number
  counters: readonly BudgetCounter[]
}

/** Key ID, random bytes, sequence (8) and revoked keys (4). */
const HEAD_BYTES = 44
/** Window (8) and amount (32). */
const COUNTER_BYTES = 40
const MAX_COUNTERS = 8

/** The bytes of a state, in hex. */
export function toStateHex({ keyId, random, sequence, revoked, counters }: VaultState): string {
  const pad = (value: number | bigint, bytes: number) => value.toString(16).padStart(2 * bytes, '0')
  const counted = counters.map(({ window, spent }) => pad(window, 8) + pad(spent, 32))
  return [keyId, random, pad(sequence, 8), pad(revoked, 4), ...counted].join('')
}

/** Undefined for anything else than a state. */
export function parseStateHex(text: string): VaultState | undefined {
  const counters = (text.length / 2 - HEAD_BYTES) / COUNTER_BYTES
  if (!Number.isInteger(counters) || counters < 0 || counters > MAX_COUNTERS || !isHex(text)) return undefined
  const slice = (start: number, bytes: number) => text.slice(2 * start, 2 * (start + bytes))
  const read = (start: number, bytes: number) => Number.parseInt(slice(start, bytes), 16)
  const state: VaultState = {
    keyId: text.slice(0, 32),
    random: text.slice(32, 64),
    sequence: read(32, 8),
    revoked: read(40, 4),
    counters: Array.from({ length: counters }, (_, index) => {
      const start = HEAD_BYTES + COUNTER_BYTES * index
      return { window: read(start, 8), spent: BigInt(`0x${slice(start + 8, 32)}`) }
    }),
  }
  // Numbers above 2^53 lose digits.
  return toStateHex(state) === text ? state : undefined
}
