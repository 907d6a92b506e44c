import { isTerminalProofStatus, type ProofPayload } from '@countersign/protocol'
import { getProof, VerifierError } from '@countersign/verify'
import { useEffect, useMemo, useState } from 'react'
import { fetchBytes } from '../worker/pageFetch.ts'

export type ProofState = {
  proof: ProofPayload | undefined
  error: VerifierError | undefined
  /** Whether the page polls again on its own. */
  isPolling: boolean
}

/** After the previous response, as in the SDK. */
export const POLL_INTERVAL_MS = 4000

const ASKING: ProofState = { proof: undefined, error: undefined, isPolling: true }

/**
 * Polls a proof like the SDK's `useAttestation`, but for visitors without a session. It accepts contradictory responses and stops after
 * a final error.
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
      // In development, React mounts twice and stops the first mount before it polls.
      if (!isCurrent) return
      let error: VerifierError | undefined
      try {
        proof = keepIfSame(proof, await getProof({ fetchBytes }, { api: apiBaseUrl, slug }))
      } catch (cause) {
        error = cause instanceof VerifierError ? cause : new VerifierError('fetch_failed', String(cause), { cause })
      }
      if (!isCurrent) return
      const isPolling = error === undefined ? !isFinished(proof) : !isFinal(error)
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

/** A retry would get the same response: the proof doesn't exist, or the URL isn't the service's. */
function isFinal({ status }: VerifierError): boolean {
  return status === 404 || status === 200
}

/** Returns the same object for an unchanged proof, so that nothing is verified again. */
function keepIfSame(previous: ProofPayload | undefined, next: ProofPayload): ProofPayload {
  return previous !== undefined && JSON.stringify(previous) === JSON.stringify(next) ? previous : next
}

function isFinished(proof: ProofPayload | undefined): boolean {
  return proof !== undefined && isTerminalProofStatus(proof.status)
}
