import { useEffect, useState } from 'react'
import { VerificationError } from './errors.ts'
import { startVerification } from './startVerification.ts'
import type { Verification, VerificationRequest } from './verifySubject.ts'

export type VerificationState =
  | { phase: 'idle' }
  | { phase: 'running'; progress: string }
  | { phase: 'done'; verification: Verification }
  | { phase: 'failed'; error: VerificationError }

type Answer = { request: VerificationRequest; state: VerificationState }

const STARTING: VerificationState = { phase: 'running', progress: 'Starting the verifier.' }

/** Verifies whatever `request` is; another object is another verification, and ends the one before. */
export function useVerification(request: VerificationRequest | undefined): VerificationState {
  const [answer, setAnswer] = useState<Answer | undefined>(undefined)

  useEffect(() => {
    if (request === undefined) return
    let isCurrent = true
    const set = (state: VerificationState) => {
      if (isCurrent) setAnswer({ request, state })
    }
    const { result, stop } = startVerification(request, {
      onProgress: (progress) => set({ phase: 'running', progress }),
    })
    result.then(
      (verification) => set({ phase: 'done', verification }),
      (error) => set({ phase: 'failed', error: toError(error) }),
    )
    return () => {
      isCurrent = false
      stop()
    }
  }, [request])

  if (request === undefined) return { phase: 'idle' }
  return answer?.request === request ? answer.state : STARTING
}

function toError(error: unknown): VerificationError {
  return error instanceof VerificationError ? error : new VerificationError('internal', String(error))
}
