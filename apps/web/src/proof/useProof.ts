import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'
import { getProof, VerifierError } from '@countersign/verify'
import { useEffect, useMemo, useState } from 'react'
import { fetchBytes } from '../worker/pageFetch.ts'

export type ProofState = {
  proof: ProofPayload | undefined
  error: VerifierError | undefined
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
    const { apiBaseUrl, slug } = question
    let isCurrent = true
    let timer: ReturnType<typeof setTimeout> | undefined
    let proof: ProofPayload | undefined

    async function poll() {
      // React mounts twice in development, at once: what was stopped by then asks nothing.
      if (!isCurrent) return
      let error: VerifierError | undefined
      try {
        proof = keepIfSame(proof, await getProof({ fetchBytes }, { api: apiBaseUrl, slug }))
      } catch (cause) {
        error = cause instanceof VerifierError ? cause : new VerifierError('fetch_failed', String(cause), { cause })
      }
      if (!isCurrent) return
      const isPolling = error === undefined ? !isSettled(proof) : !isFinal(error)
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

/** The service answered, and will answer the same: there is no such proof, or it is no such service. */
function isFinal({ status }: VerifierError): boolean {
  return status === 404 || status === 200
}

/** A poll that brings nothing new gives the same object, so that nothing is verified again. */
function keepIfSame(previous: ProofPayload | undefined, next: ProofPayload): ProofPayload {
  return previous !== undefined && JSON.stringify(previous) === JSON.stringify(next) ? previous : next
}

function isSettled(proof: ProofPayload | undefined): boolean {
  return proof !== undefined && isTerminalProofStatus(proof.status)
}
