import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'
import { useEffect, useMemo, useState } from 'react'
import { getProof, ProofError } from '../verification/getProof.ts'

export type ProofState = {
  proof: ProofPayload | undefined
  error: ProofError | undefined
  /** Whether it will be asked again without anybody's doing. */
  isPolling: boolean
}

/** After the previous answer, as in the SDK. */
export const POLL_INTERVAL_MS = 4000

const ASKING: ProofState = { proof: undefined, error: undefined, isPolling: true }

/**
 * Follows a proof, as the SDK's `useAttestation` does, but for strangers: it asks nothing about a session, takes answers
 * that contradict themselves, and stops where asking again is of no use.
 */
export function useProof({ apiBaseUrl, slug }: { apiBaseUrl: string; slug: string }) {
  const [round, setRound] = useState(0)
  const question = useMemo(() => ({ apiBaseUrl, slug, round }), [apiBaseUrl, slug, round])
  const [answer, setAnswer] = useState<{ question: typeof question; state: ProofState } | undefined>(undefined)

  useEffect(() => {
    let isCurrent = true
    let timer: ReturnType<typeof setTimeout> | undefined
    let proof: ProofPayload | undefined

    async function poll() {
      // React mounts twice in development, at once: what was stopped by then asks nothing.
      if (!isCurrent) return
      let error: ProofError | undefined
      try {
        proof = await getProof(question)
      } catch (cause) {
        error = cause instanceof ProofError ? cause : new ProofError('unavailable', String(cause), { cause })
      }
      if (!isCurrent) return
      const isPolling = error === undefined ? !isSettled(proof) : error.code === 'unavailable'
      setAnswer({ question, state: { proof, error, isPolling } })
      if (isPolling) timer = setTimeout(poll, POLL_INTERVAL_MS)
    }

    void Promise.resolve().then(poll)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [question])

  const state = answer?.question === question ? answer.state : ASKING
  return { ...state, retry: () => setRound((previous) => previous + 1) }
}

function isSettled(proof: ProofPayload | undefined): boolean {
  return proof !== undefined && isTerminalProofStatus(proof.status)
}
