import { createPublicKey, type KeyObject, sign } from 'node:crypto'
import { LogError, parseCheckpoint } from '@countersign/log/core'
import type { Keyring } from './deriveKey.ts'

/** The keys of logs, in the key worker's thread: they sign checkpoints, and nothing else. */
export type LogKeys = {
  /** The public key, 32 bytes. */
  describe(origin: string): Uint8Array<ArrayBuffer>
  /** Ed25519 over the text of a checkpoint of that origin. Undefined where it is none. */
  sign(origin: string, text: string): Uint8Array<ArrayBuffer> | undefined
}

export function createLogKeys(keyring: Pick<Keyring, 'deriveLogKey'>): LogKeys {
  /** There are as many as the settings have origins. */
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
