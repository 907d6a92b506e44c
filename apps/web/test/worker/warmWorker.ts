import type { FromWorker, ToWorker } from '../../src/worker/messages.ts'
import type { VerifierWorker } from '../../src/worker/startVerification.ts'

/**
 * Stands in for `Worker` in tests that verify many times. Starting a worker takes most of the time, so a finished worker is reused.
 * A worker that is terminated early really ends.
 */
export function createWarmWorker() {
  const RealWorker = globalThis.Worker
  const idle: Worker[] = []

  function createKeeper(url: string | URL, options?: WorkerOptions): VerifierWorker {
    const worker = idle.pop() ?? new RealWorker(url, options)
    const listening = new AbortController()
    let isBusy = true
    worker.addEventListener(
      'message',
      ({ data }: MessageEvent<FromWorker>) => {
        if (data.type === 'done' || data.type === 'failed') isBusy = false
      },
      listening,
    )
    return {
      postMessage: (message: ToWorker) => worker.postMessage(message),
      addEventListener: worker.addEventListener.bind(worker),
      terminate() {
        if (listening.signal.aborted) return
        listening.abort()
        if (isBusy) worker.terminate()
        else idle.push(worker)
      },
    }
  }

  return class {
    constructor(url: string | URL, options?: WorkerOptions) {
      // biome-ignore lint/correctness/noConstructorReturn: what stands in for a worker is no class
      return createKeeper(url, options)
    }
  }
}
