import type { AttestationReceiptV1 } from '@countersign/receipt'
import type { Proof } from '../../src/store/proofs.ts'

/** Published, but not final yet. */
export const completeProof: Proof = {
  slug: 'AAAAAAAAAAAAAAAAAAAAAA',
  kind: 'transaction',
  txHash: `0x${'11'.repeat(32)}`,
  chainId: 1,
  walletAddress: `0x${'22'.repeat(20)}`,
  status: 'complete',
  ipfsCid: 'bafkcid',
  onchainTxHash: `0x${'33'.repeat(32)}`,
  onchainBlockNumber: 5,
  kmsQuoteVerified: true,
  receipt: null,
  createdAt: 0,
  isFinal: false,
}

/** The same data as in this receipt. */
export function toCompleteProof(receipt: AttestationReceiptV1): Proof {
  return {
    ...completeProof,
    txHash: receipt.transaction.txHash,
    chainId: receipt.transaction.chainId,
    walletAddress: receipt.transaction.from,
    ipfsCid: receipt.signer.collateral,
    receipt: Buffer.from(JSON.stringify(receipt)),
    createdAt: Date.parse('2026-06-15T12:00:00.000Z'),
  }
}
