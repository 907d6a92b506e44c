import type { Hex } from '@countersign/sdk'
import type { Token } from '../config.ts'

/** What an address was paid. */
export type Incoming = {
  /** One for each payment. */
  key: string
  /** Null where a contract paid: the chain then names no payer. */
  from: Hex | null
  /** Of the transaction; null where it cannot be told which it was. */
  txHash: Hex | null
  amount: bigint
  /** Null for ether. */
  token: Token | null
  blockNumber: bigint
  /** ISO 8601. */
  time: string
}

/** What a look at the chain found. */
export type Found = {
  payments: Incoming[]
  /** The blocks after this one were looked at. */
  fromBlock: bigint
}

export function toTime(timestamp: bigint): string {
  return new Date(Number(timestamp) * 1000).toISOString()
}
