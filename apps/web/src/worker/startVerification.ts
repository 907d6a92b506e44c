import { ServiceError } from '@countersign/protocol'
import type { Outcome, Progress, VerifyRequest } from '@countersign/verify'
import { type FromWorker, type ToWorker, toPlainError, toServiceError } from './messages.ts'
import { fetchBytes } from './pageFetch.ts'

export type RunningVerification = {
  /** Rejects with a `ServiceError`. Stays pending after a stop. */
  result: Promise<Outcome>
  stop(): void
}

export type VerifierWorker = Pick<Worker, 'postMessage' | 'addEventListener' | 'terminate'>

/** Verifies in a dedicated worker, so that the page stays responsive for any receipt. */
export function startVerification(
  request: VerifyRequest,
  { onProgress }: { onProgress: (progress: Progress) => void },
): RunningVerification {
  const worker: VerifierWorker = new Worker(new URL('./verify.worker.ts', import.meta.url), { type: 'module' })
  const listening = new AbortController()
  function stop() {
    listening.abort()
    worker.terminate()
  }
  const result = new Promise<Outcome>((resolve, reject) => {
    function send(message: ToWorker) {
      try {
        worker.postMessage(message)
      } catch (cause) {
        // Otherwise the worker would wait forever for a message that can't be cloned.
        stop()
        reject(new ServiceError('internal', 'The request could not be handed to the verifier.', { cause }))
      }
    }
    function receive({ data }: MessageEvent<FromWorker>) {
      switch (data.type) {
        case 'progress':
          return onProgress(data.progress)
        case 'fetch':
          return void fetchBytes(data.parameters).then(
            (bytes) => send({ type: 'fetched', id: data.id, bytes }),
            (error) => send({ type: 'fetch-failed', id: data.id, error: toPlainError(error) }),
          )
        case 'done':
          stop()
          return resolve(data.outcome)
        case 'failed':
          stop()
          return reject(toServiceError(data.error))
      }
    }
    function fail({ message }: ErrorEvent) {
      stop()
      reject(new ServiceError('internal', message || 'The verifier could not be loaded.'))
    }

    worker.addEventListener('message', receive, listening)
    worker.addEventListener('error', fail, listening)
    send({ type: 'verify', request })
  })
  return { result, stop }
}
