import { concatBytes, isNatural, toU64be } from '@countersign/protocol/core'
import { type Checkpoint, parseCheckpoint } from './checkpoint.ts'
import { LogError } from './errors.ts'
import type { NoteSignature } from './note.ts'
import type { NoteKey, NoteKeyType } from './noteKey.ts'

/** The time of a cosignature, in whole seconds. An Ed25519 signature of the log has none. */
export type SigningTime = { timestampS?: number }

/**
 * The message that a key signs for a text: for a log the text, for a witness the checkpoint in it with a time
 * (c2sp.org/tlog-cosignature).
 *
 * @example
 * const signature = toNoteSignature(key, sign(toSignedMessage(key, text, { timestampS })), { timestampS })
 */
export function toSignedMessage({ type, name }: NoteKey, text: string, { timestampS }: SigningTime = {}): Uint8Array {
  if (type === 'ed25519') return encode(text)
  const checkpoint = parseCheckpoint(text)
  const time = assertTime(type, timestampS)
  if (type === 'cosignature-ed25519') return encode(`cosignature/v1\ntime ${time}\n${text}`)
  // This kind doesn't cover extension lines, so they could be changed below the signature.
  if (checkpoint.extensions.length > 0) throw new LogError('checkpoint_malformed', 'extension lines are not signed')
  return toSubtreeMessage(name, checkpoint, time)
}

/** Encodes a signature for a note: a cosignature begins with its time. */
export function toNoteSignature(key: NoteKey, signature: Uint8Array, { timestampS }: SigningTime = {}): NoteSignature {
  const bytes = key.type === 'ed25519' ? signature : concatBytes(toU64be(assertTime(key.type, timestampS)), signature)
  return { name: key.name, keyId: key.id, bytes }
}

/** `cosigned_message` of a whole tree, with the presentation of RFC 8446 §3. */
function toSubtreeMessage(cosigner: string, { origin, size, root }: Checkpoint, timestampS: number): Uint8Array {
  return concatBytes(
    encode('subtree/v1\n\0'),
    toOpaque(encode(cosigner)),
    toU64be(timestampS),
    toOpaque(encode(origin)),
    toU64be(0),
    toU64be(size),
    root,
  )
}

/** opaque<1..2^8-1> */
function toOpaque(bytes: Uint8Array): Uint8Array {
  if (bytes.length < 1 || bytes.length > 255) {
    throw new LogError('note_key_malformed', 'the name of a cosigner does not have 1 to 255 bytes')
  }
  return concatBytes(Uint8Array.of(bytes.length), bytes)
}

/** With ML-DSA-44, a time of zero means that it states no time. Logs use that. */
function assertTime(type: NoteKeyType, timestampS: number | undefined): number {
  const isTime = isNatural(timestampS) && (timestampS > 0 || type === 'cosignature-ml-dsa-44')
  if (!isTime) throw new LogError('note_malformed', 'a cosignature needs a time')
  return timestampS
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
