import { Worker } from 'node:worker_threads'
import type { Hex, SignItem, SignItemError } from '@countersign/protocol'
import type { SignedItem } from '../sign/signItem.ts'

type OpenedGrant = { grant: string; keyId: string; address: Hex }

/**
 * The one thread that holds the root secret. It checks grants and signs while the main thread talks to callers and waits for
 * quotes; nothing that comes out of it is secret but the session secret's grant.
 */
export type Vault = {
  openGrant(parameters: { owner: string; sidHash: string; exp: number }): Promise<OpenedGrant>
  sign(item: SignItem, coordinatorKey: string): Promise<SignedItem | SignItemError>
  /** Resolves when the thread has ended, whether asked to or not: without it the enclave is of no use. */
  ended: Promise<void>
  close(): Promise<void>
}

export type VaultTask =
  | { kind: 'openGrant'; owner: string; sidHash: string; exp: number }
  | { kind: 'sign'; item: SignItem; coordinatorKey: string }

export type VaultAnswer = OpenedGrant | SignedItem | SignItemError | { failure: string }

/**
 * A message to a thread costs more than a hash in it, so tasks travel together; but not too many, or callers, vault and
 * quotes fall into step and each waits for the others: with all of 256 in one message the enclave is half idle.
 */
const MAX_TASKS = 8

type Waiting = { resolve(answer: never): void; reject(error: Error): void }

export type VaultParameters = {
  /** Taken over: the given bytes are zero afterwards. */
  rootSecret: Uint8Array<ArrayBuffer>
  configHash: Uint8Array
}

export async function createVault({ rootSecret, configHash }: VaultParameters): Promise<Vault> {
  const worker = new Worker(new URL('./vaultWorker.ts', import.meta.url), { workerData: { rootSecret, configHash } })
  rootSecret.fill(0)
  const waiting: Waiting[][] = []
  let tasks: VaultTask[] = []
  let callers: Waiting[] = []
  let failure: Error | undefined

  function fail(error: Error) {
    failure ??= error
    for (const caller of [...waiting.flat(), ...callers]) caller.reject(failure)
    waiting.length = 0
    callers = []
  }

  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
  })
  worker.on('error', (error) => fail(error instanceof Error ? error : new Error('the vault failed')))
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      fail(new Error('the vault has ended'))
      resolve()
    })
  })
  worker.on('message', (answers: VaultAnswer[]) => {
    for (const [index, caller] of (waiting.shift() ?? []).entries()) {
      const answer = answers[index]
      if (answer === undefined || 'failure' in answer) caller.reject(new Error(answer?.failure ?? 'no answer'))
      else caller.resolve(answer as never)
    }
  })

  /** Tasks of one turn of the event loop travel together, up to a few: see MAX_TASKS. */
  function send<Answer extends VaultAnswer>(task: VaultTask): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      if (failure !== undefined) return reject(failure)
      if (tasks.length === 0) setImmediate(flush)
      tasks.push(task)
      callers.push({ resolve, reject })
      if (tasks.length === MAX_TASKS) flush()
    })
  }

  function flush() {
    if (tasks.length === 0) return
    waiting.push(callers)
    worker.postMessage(tasks)
    tasks = []
    callers = []
  }

  return {
    ended,
    openGrant: (parameters) => send({ kind: 'openGrant', ...parameters }),
    sign: (item, coordinatorKey) => send({ kind: 'sign', item, coordinatorKey }),
    async close() {
      await worker.terminate()
    },
  }
}
