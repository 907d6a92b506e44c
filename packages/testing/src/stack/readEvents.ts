import { type AttestationPublished, attestationPublishedTopic, parseAttestationPublished } from '@countersign/protocol'

/** Reads all events of the contract on the canonical chain, as a third party would. */
export async function readEvents({
  url,
  contract,
}: {
  url: string
  contract: string
}): Promise<AttestationPublished[]> {
  const params = [{ address: contract, fromBlock: '0x0', toBlock: 'latest', topics: [attestationPublishedTopic] }]
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params }),
  })
  const { result } = (await response.json()) as { result: { topics: string[]; data: string }[] }
  return result.map(parseAttestationPublished)
}
