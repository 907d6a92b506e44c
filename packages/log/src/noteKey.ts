import { concatBytes, isEd25519Key, toHex } from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { fromBase64, toBase64 } from './base64.ts'
import { LogError } from './errors.ts'
import { isKeyName } from './note.ts'

/**
 * The types of keys, by the message that they sign: a note's text (logs), or a checkpoint with a time (witnesses). c2sp.org/signed-note
 * assigns the byte of each.
 */
export type NoteKeyType = 'ed25519' | 'cosignature-ed25519' | 'cosignature-ml-dsa-44'

/** A public key with its name. The ID is derived from all of it. */
export type NoteKey = { name: string; type: NoteKeyType; publicKey: Uint8Array; id: string }

const TYPES = {
  ed25519: { byte: 0x01, length: 32 },
  'cosignature-ed25519': { byte: 0x04, length: 32 },
  'cosignature-ml-dsa-44': { byte: 0x06, length: 1_312 },
} as const satisfies Record<NoteKeyType, { byte: number; length: number }>

/** Creates a key with a name. Throws `note_key_malformed` if it is not valid. */
export function createNoteKey({ name, type, publicKey }: Omit<NoteKey, 'id'>): NoteKey {
  if (!isKeyName(name)) throw malformed('the name is empty, or has spaces or plus signs')
  if (!Object.hasOwn(TYPES, type)) throw malformed('the type is unknown')
  const { length } = TYPES[type]
  if (publicKey.length !== length) throw malformed(`the key does not have ${length} bytes`)
  // Under a key of small order, one signature fits many texts.
  if (length === 32 && !isEd25519Key(publicKey))
    throw malformed('the key is not a point of Ed25519, or has small order')
  return { name, type, publicKey: Uint8Array.from(publicKey), id: computeKeyId({ name, type, publicKey }) }
}

/** The ID of a key with a name, for the line below a note. */
export function computeKeyId({ name, type, publicKey }: Omit<NoteKey, 'id'>): string {
  const preimage = concatBytes(new TextEncoder().encode(`${name}\n`), Uint8Array.of(TYPES[type].byte), publicKey)
  return toHex(sha256(preimage).subarray(0, 4))
}

/**
 * Parses a verifier key, `name+id+base64(type ‖ key)`.
 *
 * @example
 * parseVkey('sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8').name // 'sum.golang.org'
 */
export function parseVkey(vkey: string): NoteKey {
  const parts =
    typeof vkey === 'string' && vkey.length <= MAX_VKEY ? /^([^+]+)\+([0-9a-f]{8})\+(.+)$/s.exec(vkey) : null
  const [, name = '', id, base64 = ''] = parts ?? []
  const bytes = fromBase64(base64)
  if (parts === null || bytes === undefined) throw malformed('expected name+id+key')
  const [type] = (Object.keys(TYPES) as NoteKeyType[]).filter((one) => TYPES[one].byte === bytes[0])
  if (type === undefined) throw malformed('the type is unknown')
  const key = createNoteKey({ name, type, publicKey: bytes.slice(1) })
  if (key.id !== id) throw malformed(`wrong key id: expected ${key.id}, found ${id}`)
  return key
}

/** The hex of the Ed25519 key in a witness's verifier key. Undefined for other text. */
export function parseWitnessKey(vkey: string): string | undefined {
  try {
    const { type, publicKey } = parseVkey(vkey)
    return type === 'cosignature-ed25519' ? toHex(publicKey) : undefined
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

const MAX_VKEY = 4_096

/** Formats a key as a verifier key. */
export function toVkey({ name, type, publicKey, id }: NoteKey): string {
  return `${name}+${id}+${toBase64(concatBytes(Uint8Array.of(TYPES[type].byte), publicKey))}`
}

function malformed(details: string) {
  return new LogError('note_key_malformed', 'malformed key', { details })
}
