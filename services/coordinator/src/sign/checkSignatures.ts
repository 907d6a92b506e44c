import { Worker } from 'node:worker_threads'
import type { Hex, TxMetadata } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
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
  /** `isSampleSigned`, for each sample, while there are no claims to check. Fails as `check` does. */
  checkSamples(samples: readonly Witness[]): Promise<boolean[]>
  stop(): Promise<void>
}

/** What is sent to the thread. */
export type SignatureWork =
  | { claims: readonly SignatureClaim[]; samples?: never }
  | { samples: readonly Witness[]; claims?: never }

/** What comes back: of each kind in the order of the work, and claims before samples. */
export type SignatureAnswers = { kind: keyof SignatureWork; answers: boolean[] }

type Waiting = { resolve(answers: boolean[]): void; reject(error: Error): void }
type Thread = { worker: Worker; waiting: Record<keyof SignatureWork, Waiting[]> }

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

  async function send(kind: keyof SignatureWork, work: SignatureWork): Promise<boolean[]> {
    const { worker, waiting } = await getThread()
    return new Promise((resolve, reject) => {
      if (isStopped) return reject(ended())
      // Before anyone waits: work that cannot be sent must not leave a place in the queue, or answers get the wrong owner.
      worker.postMessage(work)
      waiting[kind].push({ resolve, reject })
    })
  }

  await getThread()
  return {
    check: (claims) => send('claims', { claims }),
    checkSamples: (samples) => send('samples', { samples }),
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
  const waiting: Thread['waiting'] = { claims: [], samples: [] }
  function end(error: Error) {
    onEnd()
    for (const { reject } of [...waiting.claims.splice(0), ...waiting.samples.splice(0)]) reject(error)
  }
  worker.on('error', (error) => end(error instanceof Error ? error : ended()))
  worker.on('exit', () => end(ended()))
  worker.on('message', ({ kind, answers }: SignatureAnswers) => waiting[kind].shift()?.resolve(answers))
  return { worker, waiting }
}

function ended() {
  return new Error('the signature checker has ended')
}
