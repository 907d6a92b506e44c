import { attestationPublishedTopic, readAttestationPublished } from '@countersign/protocol'
import type { GivenAnchor } from '@countersign/receipt'
import type { Rpc } from '../createRpc.ts'
import { type RawLog, readLogs } from '../readLogs.ts'

/** A wallet's event from the contract, or a checkpoint whose anchor lists a receipt of the wallet. */
export type WalletEvent = {
  txHash: string
  ipfsCid: string
  log: RawLog
  /** Undefined for an event. */
  anchor?: { given: GivenAnchor; wallet: string }
}

export type ListEventsParameters = { contract: string; wallet: string; fromBlock: number; toBlock: number }

/** All events of a wallet, oldest first. */
export async function listEvents(rpc: Rpc, parameters: ListEventsParameters): Promise<WalletEvent[]> {
  const { contract, wallet, ...range } = parameters
  const topics = [attestationPublishedTopic, `0x${wallet.slice(2).padStart(64, '0')}`]
  const events: WalletEvent[] = []
  for await (const logs of readLogs(rpc, { addresses: [contract], topics, ...range })) {
    for (const log of logs) {
      // An event without a CID is ignored. Its transaction then has no receipt.
      const event = readAttestationPublished(log)
      if (event?.wallet === wallet) events.push({ txHash: event.txHash, ipfsCid: event.ipfsCid, log })
    }
  }
  return events
}
