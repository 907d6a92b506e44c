import { randomBytes } from 'node:crypto'
import type { Hex } from '@countersign/protocol'
import { assembleReceipt } from '../../services/coordinator/src/publish/assembleReceipt.ts'
import type { PipelineStore } from '../../services/coordinator/src/store/openStore.ts'

const CHAIN_ID = 84_532

/**
 * Completes signed proofs with the pipeline's code and rows but without IPFS or a chain: the receipts are real, their transactions aren't.
 */
export async function completeProofs(
  { pinning, publications }: Pick<PipelineStore, 'pinning' | 'publications'>,
  slugs: readonly string[],
  { isPublished = true, isFinal = true } = {},
): Promise<void> {
  for (const slug of slugs) {
    const work = await pinning.findPin(slug)
    if (work === undefined) throw new Error('proof not found')
    const { receipt } = assembleReceipt(work)
    await pinning.freezeReceipt({ slug, bytes: receipt.bytes })
    await pinning.completePin({ slug, cid: receipt.cid, now: Date.now() })
  }
  if (!isPublished) return
  const account: Hex = `0x${'22'.repeat(20)}`
  const nonce = await publications.findNextNonce({ chainId: CHAIN_ID, account })
  const hash: Hex = `0x${randomBytes(32).toString('hex')}`
  const isClaimed = await publications.claim({
    chainId: CHAIN_ID,
    account,
    nonce,
    contract: `0x${'33'.repeat(20)}`,
    calldata: '0x',
    slugs,
    transaction: { hash, raw: '0x', kind: 'publish', gas: 1n, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
    now: Date.now(),
  })
  const open = (await publications.findOpen(CHAIN_ID)).find((publication) => publication.nonce === nonce)
  if (!isClaimed || open === undefined) throw new Error('failed to claim the proofs for a publication')
  await publications.confirm({ id: open.id, txHash: hash, blockNumber: 1 })
  if (isFinal) await publications.finish({ id: open.id })
}
