import { attestationPublishedTopic, readAttestationPublished } from '@countersign/protocol'
import { parseLog, type RawLog } from '../createChain.ts'
import { type Rpc, toQuantity, unavailable } from '../createRpc.ts'
import { VerifierError } from '../errors.ts'

/** A wallet's event from the contract. */
export type WalletEvent = { txHash: string; ipfsCid: string; log: RawLog }

export type ListEventsParameters = { contract: string; wallet: string; fromBlock: number; toBlock: number }

/** The range of one request. Nodes limit the blocks or the size of the response, and report that in different ways. */
const RANGES = [Number.POSITIVE_INFINITY, 10_000, 1_000, 100]

/** All events of a wallet, oldest first, with as few requests as the node allows. Rejects if the node refuses even small ranges. */
export async function listEvents(rpc: Rpc, parameters: ListEventsParameters): Promise<WalletEvent[]> {
  const { contract, wallet, fromBlock, toBlock } = parameters
  const events: WalletEvent[] = []
  let [range, ...smaller] = RANGES as [number, ...number[]]
  for (let from = fromBlock; from <= toBlock; ) {
    const to = Math.min(toBlock, from + range - 1)
    try {
      events.push(...(await getEvents(rpc, { contract, wallet, fromBlock: from, toBlock: to })))
      from = to + 1
    } catch (error) {
      const next = smaller.find((size) => size < to - from + 1)
      if (!(error instanceof VerifierError) || next === undefined) throw error
      range = next
      smaller = smaller.filter((size) => size < next)
    }
  }
  return events
}

async function getEvents(
  rpc: Rpc,
  { contract, wallet, fromBlock, toBlock }: ListEventsParameters,
): Promise<WalletEvent[]> {
  const topics = [attestationPublishedTopic, `0x${wallet.slice(2).padStart(64, '0')}`]
  const range = { fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) }
  const result = await rpc.call('eth_getLogs', [{ address: contract, topics, ...range }])
  const what = `${rpc.host}: eth_getLogs`
  if (!Array.isArray(result)) throw unavailable(`${what} is not a list`)
  return result.flatMap((entry) => {
    const log = parseLog(entry, what)
    if (log === undefined || log.address.toLowerCase() !== contract) return []
    if (log.blockNumber < fromBlock || log.blockNumber > toBlock) throw unavailable(`${what} has other blocks`)
    // An event without a CID is ignored. Its transaction then has no receipt.
    const event = readAttestationPublished(log)
    return event?.wallet === wallet ? [{ txHash: event.txHash, ipfsCid: event.ipfsCid, log }] : []
  })
}
