import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { isEd25519Signature } from '@countersign/service/ed25519'
import { serveThread } from '@countersign/service/thread'
import { createBudgetTable } from '../budget/budgetTable.ts'
import { checkGrant, createGrant } from '../grant/grant.ts'
import {
  computeCommitment,
  createRootSecretHolder,
  RootSecretError,
  type RootSecretHolder,
} from '../rootSecret/rootSecretHolder.ts'
import { signItem } from '../sign/signItem.ts'
import { createVerifyEs256 } from '../vault/es256.ts'
import { createPolicies } from '../vault/policies.ts'
import { createKeyring, type Keyring } from './deriveKey.ts'
import type {
  HolderAnswer,
  HolderCall,
  KeyWorkerAnswer,
  KeyWorkerAnswers,
  KeyWorkerParameters,
  KeyWorkerTask,
} from './keyWorker.ts'
import { createLogKeys, type LogKeys } from './logKeys.ts'

const { rootSecret, configHash, implementations, chainIds, log = null }: KeyWorkerParameters = workerData
const random = (length: number) => new Uint8Array(randomBytes(length))
const budgets = createBudgetTable({ random })
const vaultDeps = {
  policies: createPolicies({ log }),
  verifyEs256: createVerifyEs256(),
  verifyEd25519: isEd25519Signature,
  witnesses: log?.witnesses ?? [],
  budgets,
  elapsedMs: () => performance.now(),
}
// An error near a private key doesn't say its cause.
const FAILURE = { failure: 'the key worker could not do it' }

let keyring: Keyring | undefined
let logKeys: LogKeys | undefined
let commitment: Uint8Array | undefined
const useSecret = (secret: Uint8Array) => {
  keyring = createKeyring(secret, configHash)
  logKeys = createLogKeys(keyring)
  commitment = computeCommitment(secret)
}
const holder: RootSecretHolder = createRootSecretHolder({
  configHash,
  random,
  onSecret: useSecret,
})
// A secret from outside isn't stored as such, so it can't be passed on.
if (rootSecret !== undefined) useSecret(rootSecret)

function perform(task: KeyWorkerTask): KeyWorkerAnswer {
  try {
    if (keyring === undefined || logKeys === undefined || commitment === undefined) return FAILURE
    if (task.kind === 'sign') {
      return signItem({ keyring, now: task.now, random, implementations, chainIds, ...vaultDeps }, task.item, task)
    }
    if (task.kind === 'describeVault') {
      const grant = checkGrant(keyring, task)
      if ('fault' in grant) return grant
      const key = keyring.describe({ owner: grant.owner, policy: task.policy })
      return { ...key, owner: keyring.openOwner(key.keyId, grant.identity) }
    }
    if (task.kind === 'getCommitment') return { bytes: commitment }
    if (task.kind === 'startTable') return { isStarted: budgets.start(task.origin, task.states) }
    if (task.kind === 'describeLog' || task.kind === 'signCheckpoint') {
      const { origin } = task
      if (log === null || !log.origins.includes(origin)) return FAILURE
      const bytes = task.kind === 'describeLog' ? logKeys.describe(origin) : logKeys.sign(origin, task.text)
      return bytes === undefined ? FAILURE : { bytes }
    }
    const { kind: _, ...session } = task
    const { keyId, address } = keyring.describe(session.owner)
    const grant = createGrant(keyring.grantKey, { ...session, keyId, address })
    return { grant, keyId, address, owner: keyring.openOwner(keyId, session.identity) }
  } catch {
    return FAILURE
  }
}

async function answer({ method, parameter }: HolderCall): Promise<HolderAnswer> {
  try {
    return { value: copyViews(await holder[method](parameter as never)) }
  } catch (error) {
    return error instanceof RootSecretError ? { refusal: error.refusal } : FAILURE
  }
}

/** A message copies the whole buffer behind a view, so each view gets a buffer of exactly its bytes. */
function copyViews(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (Array.isArray(value)) return value.map(copyViews)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyViews(member)]))
}

// Run in sequence, so that answers come in the order of the calls.
let last: Promise<unknown> = Promise.resolve()
serveThread((message: KeyWorkerTask[] | HolderCall) => {
  if (Array.isArray(message)) {
    const answers = message.map(perform)
    parentPort?.postMessage({ answers, changes: budgets.takeChanges() } satisfies KeyWorkerAnswers)
  } else last = last.then(async () => parentPort?.postMessage(await answer(message)))
})
