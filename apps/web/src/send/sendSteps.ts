import type { ProofStatus } from '@countersign/sdk'
import type { Inclusion } from './useInclusion.ts'

export type SendStep = { label: string; state: 'done' | 'active' | 'waiting' | 'failed' }

type Progress = { inclusion: Inclusion; proofStatus: ProofStatus | undefined }

/** How far a payment has come that was signed and broadcast. Block and proof go their ways independently. */
export function toSendSteps({ inclusion, proofStatus }: Progress): SendStep[] {
  return [
    { label: 'Signed in the enclave and broadcast', state: 'done' },
    toBlockStep(inclusion),
    { label: 'Receipt pinned to IPFS', state: toPinState(proofStatus) },
    { label: 'Proof published on the chain', state: toPublishState(proofStatus) },
  ]
}

/** While it is being signed there is but one thing to tell. */
export const signingSteps: SendStep[] = [
  { label: 'Signing in the enclave, then broadcasting', state: 'active' },
  { label: 'In a block', state: 'waiting' },
  { label: 'Receipt pinned to IPFS', state: 'waiting' },
  { label: 'Proof published on the chain', state: 'waiting' },
]

function toBlockStep(inclusion: Inclusion): SendStep {
  if (inclusion.state === 'waiting') return { label: 'Waiting for a block', state: 'active' }
  if (inclusion.state === 'reverted') return { label: `Reverted in block ${inclusion.blockNumber}`, state: 'failed' }
  return { label: `In block ${inclusion.blockNumber}`, state: 'done' }
}

function toPinState(status: ProofStatus | undefined): SendStep['state'] {
  if (status === undefined || status === 'pending_pin') return 'active'
  return status === 'pin_failed' ? 'failed' : 'done'
}

function toPublishState(status: ProofStatus | undefined): SendStep['state'] {
  if (status === 'complete') return 'done'
  if (status === 'pending_onchain') return 'active'
  return status === 'onchain_failed' ? 'failed' : 'waiting'
}
