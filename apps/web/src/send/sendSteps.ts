import { type ProofStatus, useService } from '@countersign/sdk'
import { useEffect, useState } from 'react'

export type SendStep = { label: string; state: 'done' | 'active' | 'waiting' | 'failed' }

type Progress = { inclusion: Inclusion; proofStatus: ProofStatus | undefined }

/** Progress of a sent payment. Block and proof are independent. */
export function toSendSteps({ inclusion, proofStatus }: Progress): SendStep[] {
  return [
    { label: 'Signed and sent', state: 'done' },
    toBlockStep(inclusion),
    { label: 'Receipt pinned to IPFS', state: toPinState(proofStatus) },
    { label: 'Proof published on chain', state: toPublishState(proofStatus) },
  ]
}

/** Steps while signing. */
export const signingSteps: SendStep[] = [
  { label: 'Signing and sending', state: 'active' },
  { label: 'Confirmed on chain', state: 'waiting' },
  { label: 'Receipt pinned to IPFS', state: 'waiting' },
  { label: 'Proof published on chain', state: 'waiting' },
]

function toBlockStep(inclusion: Inclusion): SendStep {
  if (inclusion.state === 'waiting') return { label: 'Pending', state: 'active' }
  if (inclusion.state === 'reverted') return { label: `Failed in block ${inclusion.blockNumber}`, state: 'failed' }
  return { label: `Confirmed in block ${inclusion.blockNumber}`, state: 'done' }
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

/** Whether the transaction is in a block, and whether it succeeded. */
export type Inclusion = { state: 'waiting' } | { state: 'included' | 'reverted'; blockNumber: bigint }

const POLL_INTERVAL_MS = 2000

/** Polls for the transaction's receipt. Retries after errors. */
export function useInclusion(hash: `0x${string}`): Inclusion {
  const { client } = useService()
  const [inclusion, setInclusion] = useState<Inclusion>({ state: 'waiting' })
  useEffect(() => {
    let isWanted = true
    let timer: ReturnType<typeof setTimeout> | undefined
    async function poll() {
      try {
        const { status, blockNumber } = await client.publicClient.getTransactionReceipt({ hash })
        if (isWanted) setInclusion({ state: status === 'success' ? 'included' : 'reverted', blockNumber })
      } catch {
        if (isWanted) timer = setTimeout(poll, POLL_INTERVAL_MS)
      }
    }
    setInclusion({ state: 'waiting' })
    void poll()
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [client, hash])
  return inclusion
}
