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

/** The blocks after `fromBlock` were looked at. Those after `toBlock` too, but they may still be replaced. */
export type Looked = { fromBlock: bigint; toBlock: bigint /** ISO 8601, of `fromBlock`. */; since: string }

/** Why there is no telling: the node does not answer such questions, or not at all. */
export type IncomingFault = 'refused' | 'unreachable'

/** What is known of the payments to an address. */
export type IncomingState = {
  payments: readonly Incoming[]
  ether: Looked | IncomingFault | null
  /** Null too where there are no tokens. */
  tokens: Looked | IncomingFault | null
}

export const NOTHING_LOOKED_AT: IncomingState = { payments: [], ether: null, tokens: null }
