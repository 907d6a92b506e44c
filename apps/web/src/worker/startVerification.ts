import { VerificationError } from './errors.ts'
import { FetchError, fetchBytes } from './fetchBytes.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import type { Verification, VerificationRequest } from './verifySubject.ts'

export type RunningVerification = {
  /** Rejects with a `VerificationError`. Never settles once stopped. */
  result: Promise<Verification>
  stop(): void
}

/** Verifies in a worker of its own, which ends with it, so that the page stays free whatever a receipt contains. */
export function startVerification(
  request: VerificationRequest,
  { onProgress }: { onProgress: (text: string) => void },
): RunningVerification {
  const worker = new Worker(new URL('./verify.worker.ts', import.meta.url), { type: 'module' })
  const result = new Promise<Verification>((resolve, reject) => {
    function tell(message: ToWorker) {
      try {
        worker.postMessage(message)
      } catch (cause) {
        // What cannot be handed over would leave the worker waiting for ever.
        worker.terminate()
        reject(new VerificationError('internal', 'The verifier could not be told what to verify.', { cause }))
      }
    }

    worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
      switch (data.type) {
        case 'progress':
          return onProgress(data.text)
        case 'fetch':
          return void fetchBytes(data.parameters).then(
            (bytes) => tell({ type: 'fetched', id: data.id, bytes }),
            (error) => tell({ type: 'fetch-failed', id: data.id, message: toMessage(error) }),
          )
        case 'done':
          worker.terminate()
          return resolve(data.verification)
        case 'failed':
          worker.terminate()
          return reject(new VerificationError(data.code, data.message))
      }
    })
    worker.addEventListener('error', (event) => {
      worker.terminate()
      reject(new VerificationError('internal', event.message || 'The verifier could not be loaded.'))
    })
    tell({ type: 'verify', request })
  })
  return { result, stop: () => worker.terminate() }
}

function toMessage(error: unknown): string {
  return error instanceof FetchError ? error.message : 'the page could not ask'
}
