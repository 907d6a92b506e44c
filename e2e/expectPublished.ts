import { createHash } from 'node:crypto'
import type { ProofPayload } from '@countersign/protocol'
import { toCidHash } from '@countersign/receipt'
import { readEvents } from '@countersign/testing/stack'
import { expect } from 'vitest'
import type { Stack } from './startStack.ts'

/** Checks without a session that a complete proof's receipt is on IPFS and that the chain has one event for it. */
export async function expectPublished(
  { backend, chain, chainClient, contract }: Stack,
  proof: ProofPayload,
): Promise<void> {
  const { txHash, ipfsCid, onchainTxHash, onchainBlockNumber, receipt } = proof
  expect(proof).toMatchObject({ status: 'complete', chainId: chain.chainId, kmsQuoteVerified: true })
  if (ipfsCid === null || onchainTxHash === null) return expect.fail('complete, and points to nothing')
  const response = await fetch(`${backend.url}/ipfs/${ipfsCid}`)
  const block = new Uint8Array(await response.arrayBuffer())
  expect(createHash('sha256').update(block).digest('hex')).toBe(toCidHash(ipfsCid))
  expect(JSON.parse(Buffer.from(block).toString())).toEqual(receipt)
  expect(receipt).toMatchObject({ transaction: { txHash } })
  const { status, blockNumber } = await chainClient.getTransactionReceipt({ hash: onchainTxHash })
  expect([status, Number(blockNumber)]).toEqual(['success', onchainBlockNumber])
  const events = await readEvents({ url: chain.url, contract })
  expect(events.filter((event) => event.txHash === txHash)).toMatchObject([{ ipfsCid }])
}
