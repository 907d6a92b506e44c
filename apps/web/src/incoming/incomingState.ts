import type { Incoming } from './payment.ts'

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
