import type { Proof } from '../store/types.ts'

/** Published, and not yet final. */
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
