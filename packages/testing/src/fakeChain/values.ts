import type { Hex } from '@countersign/protocol'

export const ZERO_ADDRESS: Hex = `0x${'00'.repeat(20)}`
export const ZERO_HASH: Hex = `0x${'00'.repeat(32)}`

/** A number as JSON-RPC writes it. */
export function quantity(value: number | bigint): Hex {
  return `0x${value.toString(16)}`
}

export function lower(text: unknown): Hex {
  return String(text).toLowerCase() as Hex
}
