import { checkpointTopic, fromPrefixedHex, parseCheckpointEvent, toPrefixedHex } from '@countersign/protocol'
import { type AnchoredReceipt, fromCidHash, parseAnchorBlock, readAnchor, toCid } from '@countersign/receipt'

/** The addresses of a node and a gateway, and the logs in LogWitness. */
export type AnchoredLogs = { chainUrl: string; ipfsUrl: string; address: string; ids: readonly string[] }

/**
 * Reads the receipts that all checkpoints of the logs list, as a third party would. Throws if a block is withheld or invalid, or doesn't
 * continue the log from its previous checkpoint.
 */
export async function readAnchored({ chainUrl, ipfsUrl, address, ids }: AnchoredLogs): Promise<AnchoredReceipt[]> {
  const filter = { address, fromBlock: '0x0', toBlock: 'latest', topics: [checkpointTopic, ids] }
  const response = await fetch(chainUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params: [filter] }),
  })
  const { result } = (await response.json()) as { result: { topics: string[]; data: string }[] }
  const sizes = new Map<string, number>()
  const receipts: AnchoredReceipt[] = []
  for (const { id, size, root, block } of result.map(parseCheckpointEvent)) {
    const bytes = await readBlock(ipfsUrl, fromCidHash(fromPrefixedHex(block)))
    const { parts } = parseAnchorBlock(bytes)
    const anchor = readAnchor(bytes, await Promise.all(parts.map((cid) => readBlock(ipfsUrl, cid))))
    const name = `the checkpoint of ${id} at size ${size}`
    if (anchor.size !== size || toPrefixedHex(anchor.root) !== root) throw new Error(`${name} names another tree`)
    const earlier = sizes.get(id)
    if (earlier !== undefined && anchor.from !== earlier) {
      throw new Error(`${name} starts at ${anchor.from}, but the previous one ends at ${earlier}`)
    }
    sizes.set(id, size)
    receipts.push(...anchor.receipts)
  }
  return receipts
}

/** Reads a block and checks its CID. */
export async function readBlock(ipfsUrl: string, cid: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(`${ipfsUrl}/ipfs/${cid}?format=raw`)
  if (response.status !== 200) throw new Error(`${cid} not found on IPFS`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (toCid(bytes) !== cid) throw new Error(`content of ${cid} doesn't match its CID`)
  return bytes
}
