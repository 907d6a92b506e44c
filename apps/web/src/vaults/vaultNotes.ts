import { isPlainObject } from '@countersign/protocol'
import type { PasskeyCredential } from '@countersign/sdk/vaults'
import { readStored, writeStored } from '../ui/stored.ts'

/** What this browser stores about a vault besides its public rules: a name, and the credentials of passkeys created here. */
export type VaultNotes = { name: string; passkeys: readonly PasskeyCredential[] }

const NONE: VaultNotes = { name: '', passkeys: [] }
const toKey = (address: string) => `countersign:vault:${address.toLowerCase()}`

/** Ignores malformed notes. A passkey can be found without its ID. */
export function readVaultNotes(address: string): VaultNotes {
  const value = readStored(localStorage, toKey(address))
  if (!isPlainObject(value)) return NONE
  const { name, passkeys } = value
  return {
    name: typeof name === 'string' ? name.slice(0, MAX_NAME_LENGTH) : '',
    passkeys: Array.isArray(passkeys) ? passkeys.filter(isCredential) : [],
  }
}

/** Whether this browser created the vault. Anyone who had the user's session could have created a similar one with other passkeys. */
export function isMadeHere(address: string): boolean {
  return readStored(localStorage, toKey(address)) !== undefined
}

export const MAX_NAME_LENGTH = 60

export function writeVaultNotes(address: string, notes: VaultNotes): void {
  writeStored(localStorage, toKey(address), notes)
}

export function isCredential(value: unknown): value is PasskeyCredential {
  if (!isPlainObject(value)) return false
  const { credentialId, transports } = value
  const isId = typeof credentialId === 'string' && /^[A-Za-z0-9_-]{1,1400}$/.test(credentialId)
  return isId && Array.isArray(transports) && transports.every((one) => typeof one === 'string')
}
