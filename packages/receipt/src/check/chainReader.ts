import type { EventLog, Hex } from '@countersign/protocol'

/** A log from a node, with the time of its block. */
export type ChainLog = EventLog & { address: string; blockNumber: number; blockTime: Date }

/** Reads a chain. An adapter fetches, and this package checks the response. Throws if the chain is unavailable. */
export type ChainReader = {
  getLogs(query: { address: string; topics: readonly [string, string, string] }): Promise<readonly ChainLog[]>
  /** `unknown` if the node doesn't have it, or serves another chain. */
  getTransactionState(query: { chainId: number; txHash: Hex }): Promise<'mined' | 'pending' | 'unknown'>
}
