import { Worker } from 'node:worker_threads'
import type { Hex, TxMetadata } from '@countersign/protocol'

/** What a signature is claimed to be: by this key, of this address, over this digest, in a transaction of this hash. */
export type SignatureClaim = {
  digest: Hex
  signature: Hex
  publicKey: string
  address: Hex
  txHash: Hex
  txMetadata: TxMetadata
}

/** Checks signatures on a thread of its own: each takes as long as the rest of a request. */
export type SignatureChecker = {
  /** One answer per claim. */
  check(claims: readonly SignatureClaim[]): Promise<boolean[]>
  stop(): Promise<void>
}

type Waiting = { resolve(answers: boolean[]): void; reject(error: Error): void }

export async function createSignatureChecker(): Promise<SignatureChecker> {
  const worker = new Worker(new URL('./signatureWorker.ts', import.meta.url))
  const waiting: Waiting[] = []
  let failure: Error | undefined

  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
  })
  function fail(error: unknown) {
    failure ??= error instanceof Error ? error : new Error('the signature checker failed')
    for (const { reject } of waiting.splice(0)) reject(failure)
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('the signature checker has ended')))
  worker.on('message', (answers: boolean[]) => waiting.shift()?.resolve(answers))

  return {
    check: (claims) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        waiting.push({ resolve, reject })
        worker.postMessage(claims)
      }),
    async stop() {
      await worker.terminate()
    },
  }
}
