import { ServiceError } from '@countersign/protocol'
import type { Outcome, Phase, Progress, VerifierStep, VerifyRequest } from '@countersign/verify'
import { useEffect, useState } from 'react'
import { startVerification } from './startVerification.ts'

export type VerificationState =
  | { phase: 'idle' }
  /** `doing` is undefined until the worker has started; `steps` are those that have finished. */
  | { phase: 'running'; doing: Phase | undefined; steps: readonly VerifierStep[] }
  | { phase: 'done'; outcome: Outcome }
  | { phase: 'failed'; error: ServiceError }

type Running = Extract<VerificationState, { phase: 'running' }>

const STARTING: Running = { phase: 'running', doing: undefined, steps: [] }

/** Verifies `request`. Another object starts a new verification and stops the previous one. */
export function useVerification(request: VerifyRequest | undefined): VerificationState {
  const [answer, setAnswer] = useState<{ request: VerifyRequest; state: VerificationState } | undefined>(undefined)

  useEffect(() => {
    if (request === undefined) return
    let isCurrent = true
    let running = STARTING
    const set = (state: VerificationState) => {
      if (isCurrent) setAnswer({ request, state })
    }
    const { result, stop } = startVerification(request, {
      onProgress: (progress) => {
        running = withProgress(running, progress)
        set(running)
      },
    })
    result.then(
      (outcome) => set({ phase: 'done', outcome }),
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

function withProgress(running: Running, progress: Progress): Running {
  return progress.kind === 'phase'
    ? { ...running, doing: progress.phase }
    : { ...running, steps: [...running.steps, progress.step] }
}

function toError(error: unknown): ServiceError {
  return error instanceof ServiceError ? error : new ServiceError('internal', String(error))
}
