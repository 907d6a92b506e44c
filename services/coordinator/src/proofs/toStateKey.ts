import type { ProofState } from '../store/proofs.ts'

/** All that ever changes of a row. */
export function toStateKey({ status, ipfsCid, onchainTxHash, onchainBlockNumber, isFinal }: ProofState): string {
  return JSON.stringify([status, ipfsCid, onchainTxHash, onchainBlockNumber, isFinal])
}
