import { parentPort, workerData } from 'node:worker_threads'
import { createGrant } from '../grant/grant.ts'
import { signItem } from '../sign/signItem.ts'
import { createKeyring } from './deriveKey.ts'
import type { VaultAnswer, VaultTask } from './vault.ts'

const keyring = createKeyring(workerData.rootSecret, workerData.configHash)

function perform(task: VaultTask): VaultAnswer {
  try {
    if (task.kind === 'sign') return signItem({ keyring, now: Date.now() }, task.item, task.coordinatorKey)
    const { owner, sidHash, exp } = task
    const { keyId, address } = keyring.describe(owner)
    return { grant: createGrant(keyring.grantKey, { owner, sidHash, keyId, address, exp }), keyId, address }
  } catch {
    // What went wrong near a private key is not told.
    return { failure: 'the vault could not do it' }
  }
}

parentPort?.on('message', (tasks: VaultTask[]) => parentPort?.postMessage(tasks.map(perform)))
parentPort?.postMessage('ready')
