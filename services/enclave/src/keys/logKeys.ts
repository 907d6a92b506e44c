import { createPublicKey, type KeyObject, sign } from 'node:crypto'
import { LogError, parseCheckpoint } from '@countersign/log/core'
import type { Keyring } from './deriveKey.ts'

/** The keys of logs, in the key worker's thread. They sign only checkpoints. */
export type LogKeys = {
  /** The public key, 32 bytes. */
  describe(origin: string): Uint8Array<ArrayBuffer>
  /** Signs with Ed25519 a text that is a checkpoint of that origin. Returns undefined for any other text. */
  sign(origin: string, text: string): Uint8Array<ArrayBuffer> | undefined
}

export function createLogKeys(keyring: Pick<Keyring, 'deriveLogKey'>): LogKeys {
  /** One per origin in the settings. */
  const keys = new Map<string, KeyObject>()

  function getKey(origin: string): KeyObject {
    const key = keys.get(origin) ?? keyring.deriveLogKey(origin)
    keys.set(origin, key)
    return key
  }

  return {
    describe(origin) {
      const spki = createPublicKey(getKey(origin)).export({ format: 'der', type: 'spki' })
      return new Uint8Array(spki.subarray(-32))
    },
    sign: (origin, text) =>
      isCheckpointOf(origin, text) ? new Uint8Array(sign(null, Buffer.from(text), getKey(origin))) : undefined,
  }
}

function isCheckpointOf(origin: string, text: string): boolean {
  try {
    const checkpoint = parseCheckpoint(text)
    return checkpoint.origin === origin && checkpoint.extensions.length === 0
  } catch (error) {
    if (error instanceof LogError) return false
    throw error
  }
}
