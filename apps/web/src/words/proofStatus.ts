import type { ProofStatus } from '@countersign/sdk'

export type StatusWords = { label: string; meaning: string; tone: 'pending' | 'good' | 'bad' }

export const proofStatusWords: Record<ProofStatus, StatusWords> = {
  pending_pin: {
    label: 'Pinning',
    meaning: 'Signed. The receipt is being pinned to IPFS.',
    tone: 'pending',
  },
  pending_onchain: {
    label: 'Publishing',
    meaning: 'The receipt is on IPFS. It is being published on the chain.',
    tone: 'pending',
  },
  complete: { label: 'Proof public', meaning: 'The receipt is on IPFS, and the chain points to it.', tone: 'good' },
  pin_failed: {
    label: 'Not pinned',
    meaning: 'The receipt couldn’t be pinned to IPFS. The operator can still export it.',
    tone: 'bad',
  },
  onchain_failed: {
    label: 'Not on chain',
    meaning: 'The receipt is on IPFS and can be verified, but the chain doesn’t point to it.',
    tone: 'bad',
  },
}

export function isPending(status: ProofStatus): boolean {
  return proofStatusWords[status].tone === 'pending'
}
