import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { createGrant } from '../grant/grant.ts'
import { signItem } from '../sign/signItem.ts'
import { type Custody, CustodyError, createCustody } from './custody.ts'
import { createKeyring, type Keyring } from './deriveKey.ts'
import type { CustodyAnswer, CustodyCall, VaultAnswer, VaultTask } from './vault.ts'

const { rootSecret, configHash } = workerData
// What went wrong near a private key is not told.
const FAILURE = { failure: 'the vault could not do it' }

let keyring: Keyring | undefined
const useSecret = (secret: Uint8Array) => {
  keyring = createKeyring(secret, configHash)
}
const custody: Custody = createCustody({
  configHash,
  random: (length) => new Uint8Array(randomBytes(length)),
  onSecret: useSecret,
})
// A secret that was given from outside is not kept as such, and so never goes on to others.
if (rootSecret !== undefined) useSecret(rootSecret)

function perform(task: VaultTask): VaultAnswer {
  try {
    if (keyring === undefined) return FAILURE
    if (task.kind === 'sign') return signItem({ keyring, now: Date.now() }, task.item, task.coordinatorKey)
    const { owner, sidHash, exp } = task
    const { keyId, address } = keyring.describe(owner)
    return { grant: createGrant(keyring.grantKey, { owner, sidHash, keyId, address, exp }), keyId, address }
  } catch {
    return FAILURE
  }
}

async function answer({ method, parameter }: CustodyCall): Promise<CustodyAnswer> {
  try {
    return { value: copyViews(await custody[method](parameter as never)) }
  } catch (error) {
    return error instanceof CustodyError ? { refusal: error.refusal } : FAILURE
  }
}

/** A message takes along the whole buffer that a view is of, so each gets one of its own, wherever its bytes were made. */
function copyViews(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (Array.isArray(value)) return value.map(copyViews)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyViews(member)]))
}

// One after the other, so that answers come in the order of the calls.
let last: Promise<unknown> = Promise.resolve()
parentPort?.on('message', (message: VaultTask[] | CustodyCall) => {
  if (Array.isArray(message)) parentPort?.postMessage(message.map(perform))
  else last = last.then(async () => parentPort?.postMessage(await answer(message)))
})
parentPort?.postMessage('ready')
