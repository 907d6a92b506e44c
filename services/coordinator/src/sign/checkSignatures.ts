import { Worker } from 'node:worker_threads'
import type { Hex, TxMetadata } from '@countersign/protocol'
import { endThread } from '@countersign/service/thread'

/** What a signature is claimed to be: by this key, of this address, over this digest, and perhaps in a transaction of this hash. */
export type SignatureClaim = {
  digest: Hex
  signature: Hex
  publicKey: string
  address: Hex
  transaction?: { txHash: Hex; txMetadata: TxMetadata }
}

/** Checks signatures on a thread of its own: each takes as long as the rest of a request. */
export type SignatureChecker = {
  /** One answer per claim. Fails when the thread dies meanwhile; the next call has a new one. */
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

  /** The thread that there is, or a new one. */
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
        // Before anyone waits: claims that cannot be sent must not leave a place in the queue, or answers get the wrong owner.
        worker.postMessage(claims)
        waiting.push({ resolve, reject })
      })
    },
    async stop() {
      isStopped = true
      // A thread that never started has nothing to end.
      const thread = await starting?.catch(() => undefined)
      if (thread !== undefined) await endThread(thread.worker)
    },
  }
}

/** Resolves when the thread is ready. When it dies later, `onEnd` is called, and every pending check fails. */
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
