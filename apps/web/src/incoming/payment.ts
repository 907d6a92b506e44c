import type { Hex } from '@countersign/sdk'
import type { Token } from '../config.ts'

/** An incoming payment. */
export type Incoming = {
  /** Unique for each payment. */
  key: string
  /** Null if a contract paid, because the chain then names no sender. */
  from: Hex | null
  /** Null if the transaction is unknown. */
  txHash: Hex | null
  amount: bigint
  /** Null for ether. */
  token: Token | null
  blockNumber: bigint
  /** ISO 8601. */
  time: string
}

export type Found = {
  payments: Incoming[]
  /** Blocks after this one were searched. */
  fromBlock: bigint
}

export function toTime(timestamp: bigint): string {
  return new Date(Number(timestamp) * 1000).toISOString()
}

/** The searched range: blocks after `fromBlock`. Blocks after `toBlock` are searched again, because they may still be replaced. */
export type SearchedRange = { fromBlock: bigint; toBlock: bigint /** ISO 8601, of `fromBlock`. */; since: string }

/** `refused`: the node rejects the query. `unreachable`: the node doesn't respond. */
export type IncomingFault = 'refused' | 'unreachable'

export type IncomingState = {
  payments: readonly Incoming[]
  ether: SearchedRange | IncomingFault | null
  /** Also null without tokens. */
  tokens: SearchedRange | IncomingFault | null
}

export const NOTHING_SEARCHED: IncomingState = { payments: [], ether: null, tokens: null }
