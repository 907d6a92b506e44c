import { Worker } from 'node:worker_threads'
import type { Hex, LogSetting, OwnerOpening, SignItem, SignItemError } from '@countersign/protocol/core'
import { endThread } from '@countersign/service/thread'
import type { LogTimes, StateChange } from '../budget/budgetTable.ts'
import type { Grant, GrantFault } from '../grant/grant.ts'
import { RootSecretError, type RootSecretHolder, type RootSecretRefusal } from '../rootSecret/rootSecretHolder.ts'
import type { SignedItem } from '../sign/signItem.ts'
import type { VaultRules } from '../vault/checkVault.ts'
import type { WalletKey } from './deriveKey.ts'

type OpenedGrant = { grant: string; keyId: string; address: Hex; owner: OwnerOpening }
type OpenGrantParameters = Pick<Grant, 'owner' | 'identity' | 'clientKey' | 'sidHash' | 'exp'>

/**
 * The only thread that holds the root secret. It checks grants and signs while the main thread talks to callers and waits for quotes.
 * Statements, grants and public keys leave it; the root secret leaves it only sealed.
 */
export type KeyWorker = {
  openGrant(parameters: OpenGrantParameters): Promise<OpenedGrant>
  /** `now` is the signing time, because the thread has no clock. An item of a vault needs its rules. */
  sign(item: SignItem, parameters: SignParameters): Promise<SignedItem | SignItemError>
  /** Describes the vault of a session's user, by the hash of its policy. */
  describeVault(parameters: DescribeVaultParameters): Promise<OwnedKey | { fault: GrantFault }>
  /** Identifies the root secret without revealing it. 32 bytes. */
  getCommitment(): Promise<Uint8Array>
  /** The public key of the log with this origin, 32 bytes. */
  describeLog(origin: string): Promise<Uint8Array>
  /** Signs a text with the log's Ed25519 key (64 bytes) if it is a checkpoint of this origin. */
  signCheckpoint(origin: string, text: string): Promise<Uint8Array>
  /** Takes the table of budgets of a log that starts. Returns false for a malformed state. */
  startTable(origin: string, states: readonly string[]): Promise<boolean>
  /** Receives the secret if it was not given at the start, and gives it out sealed. */
  holder: RootSecretHolder
  /** Resolves when the thread has ended for any reason. The enclave can't serve without it. */
  ended: Promise<void>
  close(): Promise<void>
}

/** A key, and the opening of its owner commitment. */
type OwnedKey = WalletKey & { owner: OwnerOpening }

type SignParameters = {
  coordinatorKey: string
  now: number
  rules?: VaultRules | undefined
  /** The open log, for budgets. */
  log?: LogTimes | undefined
}
type DescribeVaultParameters = { sid: string; grant: string; policy: string; now: number }

export type KeyWorkerTask =
  | ({ kind: 'openGrant' } & OpenGrantParameters)
  | ({ kind: 'sign'; item: SignItem } & SignParameters)
  | ({ kind: 'describeVault' } & DescribeVaultParameters)
  | { kind: 'getCommitment' }
  | { kind: 'describeLog'; origin: string }
  | { kind: 'signCheckpoint'; origin: string; text: string }
  | { kind: 'startTable'; origin: string; states: readonly string[] }

export type KeyWorkerAnswer =
  | OpenedGrant
  | SignedItem
  | SignItemError
  | OwnedKey
  | { fault: GrantFault }
  | { bytes: Uint8Array }
  | { isStarted: boolean }
  | { failure: string }

/** The answers of one message, and the changes of the table that its tasks made, even where a task failed. */
export type KeyWorkerAnswers = { answers: KeyWorkerAnswer[]; changes: StateChange[] }

/** A call of `holder`. These are few, run one at a time, and are separate from the tasks, which are answered in order. */
export type HolderCall = { method: keyof RootSecretHolder; parameter: unknown }
export type HolderAnswer = { value: unknown } | { refusal: RootSecretRefusal } | { failure: string }

/**
 * A message to a thread costs more than hashing in it, so tasks travel together. The number is limited so that callers, worker and quotes
 * don't end up waiting for each other: decision 5.
 */
export const MAX_TASKS = 32

type Waiting = { resolve(answer: never): void; reject(error: Error): void }

export type KeyWorkerParameters = {
  /** Taken over: the given bytes are overwritten with zeros. If omitted, the worker signs only after the secret has come through `holder`. */
  rootSecret?: Uint8Array<ArrayBuffer>
  configHash: Uint8Array
  /** The code that accounts may be delegated to. */
  implementations: readonly Hex[]
  /** The chains to sign for. If omitted, any chain. */
  chainIds?: readonly number[] | undefined
  /** From the settings. If omitted, there is no log. */
  log?: LogSetting | null
  /** Called with each change of the table of budgets, before the answer that it belongs to. */
  onChanges?: (changes: readonly StateChange[]) => void
}

export async function createKeyWorker({
  onChanges = () => {},
  ...parameters
}: KeyWorkerParameters): Promise<KeyWorker> {
  const worker = new Worker(new URL('./keyWorkerThread.ts', import.meta.url), {
    workerData: parameters,
  })
  parameters.rootSecret?.fill(0)
  const waiting: Waiting[][] = []
  const holderCallers: Waiting[] = []
  let tasks: KeyWorkerTask[] = []
  let callers: Waiting[] = []
  let failure: Error | undefined

  function fail(error: Error) {
    failure ??= error
    for (const caller of [...waiting.flat(), ...callers, ...holderCallers]) caller.reject(failure)
    waiting.length = 0
    holderCallers.length = 0
    callers = []
  }

  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
  })
  worker.on('error', (error) => fail(error instanceof Error ? error : new Error('the key worker failed')))
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      fail(new Error('the key worker has ended'))
      resolve()
    })
  })
  worker.on('message', (message: KeyWorkerAnswers | HolderAnswer) => {
    if (!('answers' in message)) return answerCaller(holderCallers.shift(), message)
    const { answers, changes } = message
    if (changes.length > 0) onChanges(changes)
    for (const [index, caller] of (waiting.shift() ?? []).entries()) {
      const answer = answers[index]
      if (answer === undefined || 'failure' in answer) caller.reject(new Error(answer?.failure ?? 'no answer'))
      else caller.resolve(answer as never)
    }
  })

  /** Tasks of one turn of the event loop travel together, up to MAX_TASKS. */
  function send<Answer extends KeyWorkerAnswer>(task: KeyWorkerTask): Promise<Answer> {
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

  const call =
    (method: keyof RootSecretHolder) =>
    (parameter?: unknown): Promise<never> =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure)
        holderCallers.push({ resolve, reject })
        worker.postMessage({ method, parameter } satisfies HolderCall)
      })

  return {
    ended,
    holder: {
      generate: call('generate'),
      createKey: call('createKey'),
      accept: call('accept'),
      seal: call('seal'),
      share: call('share'),
      expectShares: call('expectShares'),
      addShare: call('addShare'),
    },
    openGrant: (parameters) => send({ kind: 'openGrant', ...parameters }),
    sign: (item, parameters) => send({ kind: 'sign', item, ...parameters }),
    describeVault: (parameters) => send({ kind: 'describeVault', ...parameters }),
    getCommitment: async () => (await send<{ bytes: Uint8Array }>({ kind: 'getCommitment' })).bytes,
    describeLog: async (origin) => (await send<{ bytes: Uint8Array }>({ kind: 'describeLog', origin })).bytes,
    signCheckpoint: async (origin, text) =>
      (await send<{ bytes: Uint8Array }>({ kind: 'signCheckpoint', origin, text })).bytes,
    startTable: async (origin, states) =>
      (await send<{ isStarted: boolean }>({ kind: 'startTable', origin, states })).isStarted,
    close: () => endThread(worker),
  }
}

function answerCaller(caller: Waiting | undefined, answer: HolderAnswer) {
  if ('value' in answer) caller?.resolve(answer.value as never)
  else caller?.reject('refusal' in answer ? new RootSecretError(answer.refusal) : new Error(answer.failure))
}
