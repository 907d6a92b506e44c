import { Worker } from 'node:worker_threads'
import type { Hex, TxMetadata } from '@countersign/protocol'
import { endThread } from '@countersign/service/thread'

/** A claim that this key of this address signed this digest, and that the transaction, if any, has this hash. */
export type SignatureClaim = {
  digest: Hex
  signature: Hex
  publicKey: string
  address: Hex
  transaction?: { txHash: Hex; txMetadata: TxMetadata }
}

/** Checks signatures on a separate thread: one check takes as long as the rest of a request. */
export type SignatureChecker = {
  /** Returns one result per claim. Fails if the thread dies; the next call starts a new thread. */
  check(claims: readonly SignatureClaim[]): Promise<boolean[]>
  stop(): Promise<void>
}

type Waiting = { resolve(answers: boolean[]): void; reject(error: Error): void }
type Thread = { worker: Worker; waiting: Waiting[] }

export async function createSignatureChecker(
  startWorker: () => Worker = () => new Worker(new URL('./signatureWorker.ts', import.meta.url)),
): Promise<SignatureChecker> {
  let starting: Promise<Thread> | undefined
  let isStopped = false

  /** Returns the running thread or starts one. */
  function getThread(): Promise<Thread> {
    if (isStopped) return Promise.reject(ended())
    if (starting !== undefined) return starting
    const forget = () => {
      if (starting === own) starting = undefined
    }
    const own = startThread(startWorker, forget)
    own.catch(forget)
    starting = own
    return own
  }

  await getThread()
  return {
    async check(claims) {
      const { worker, waiting } = await getThread()
      return new Promise((resolve, reject) => {
        if (isStopped) return reject(ended())
        // Send before queueing: if `postMessage` throws, a stale place in the queue would assign answers to the wrong callers.
        worker.postMessage(claims)
        waiting.push({ resolve, reject })
      })
    },
    async stop() {
      isStopped = true
      // A thread that never started needs no shutdown.
      const thread = await starting?.catch(() => undefined)
      if (thread !== undefined) await endThread(thread.worker)
    },
  }
}

/** Resolves when the thread is ready. If it dies later, `onEnd` runs and all pending checks fail. */
async function startThread(startWorker: () => Worker, onEnd: () => void): Promise<Thread> {
  const worker = startWorker()
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', () => reject(ended()))
  })
  const waiting: Waiting[] = []
  function end(error: Error) {
    onEnd()
    for (const { reject } of waiting.splice(0)) reject(error)
  }
  worker.on('error', (error) => end(error instanceof Error ? error : ended()))
  worker.on('exit', () => end(ended()))
  worker.on('message', (answers: boolean[]) => waiting.shift()?.resolve(answers))
  return { worker, waiting }
}

function ended() {
  return new Error('the signature checker has ended')
}
