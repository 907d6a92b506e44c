import { verifyEd25519 } from '@countersign/protocol/core'
import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { LogError } from './errors.ts'
import { formatNote, type Note, type NoteSignature, parseNote } from './note.ts'
import type { NoteKey } from './noteKey.ts'
import { toNoteSignature, toSignedMessage } from './signedMessage.ts'

/** A valid signature with its key and, if it is a cosignature, its time. */
export type VerifiedSignature = { key: NoteKey; signature: NoteSignature; timestampS: number | undefined }

/** Verifies an Ed25519 signature: the protocol's function, or a faster one. */
export type VerifyEd25519 = (publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean

const TIME_BYTES = 8

/**
 * Returns the text of a note that at least one of these keys signed, with their signatures. Ignores lines of other keys. Throws if a line of
 * one of these keys is invalid.
 *
 * @example
 * const { text } = openNote(note, [parseVkey(vkey)])
 */
export function openNote(
  note: string | Note,
  keys: readonly NoteKey[],
  verify?: VerifyEd25519,
): { text: string; verified: readonly VerifiedSignature[] } {
  const { text, signatures } = typeof note === 'string' ? parseNote(note) : note
  const verified: VerifiedSignature[] = []
  for (const signature of signatures) {
    const [key, second] = keys.filter(({ name, id }) => name === signature.name && id === signature.keyId)
    if (key === undefined) continue
    // Otherwise their order would decide which one signed.
    if (second !== undefined) throw new LogError('note_key_malformed', 'two keys with one name and id')
    verified.push(verifySignature(key, text, signature, verify))
  }
  if (verified.length === 0) throw new LogError('note_unsigned', 'no known key signed the note')
  return { text, verified }
}

/** Returns the signature with its time. Throws `note_signature_invalid` if the key did not sign this text. */
export function verifySignature(
  key: NoteKey,
  text: string,
  signature: NoteSignature,
  verify: VerifyEd25519 = verifyEd25519,
): VerifiedSignature {
  const isTimed = key.type !== 'ed25519'
  const timestampS = isTimed ? readTime(signature.bytes) : undefined
  const raw = isTimed ? signature.bytes.subarray(TIME_BYTES) : signature.bytes
  if (!isSigned(key, text, { raw, timestampS, verify })) {
    throw new LogError('note_signature_invalid', 'a key did not sign this note', { details: `${key.name}+${key.id}` })
  }
  return { key, signature, timestampS }
}

/** Creates a note with signatures by these keys. The caller keeps the secrets. */
export function signNote(
  text: string,
  signers: readonly { key: NoteKey; sign(message: Uint8Array): Uint8Array; timestampS?: number }[],
): string {
  const signatures = signers.map(({ key, sign, timestampS }) => {
    const time = timestampS === undefined ? {} : { timestampS }
    return toNoteSignature(key, sign(toSignedMessage(key, text, time)), time)
  })
  return formatNote({ text, signatures })
}

function isSigned(
  key: NoteKey,
  text: string,
  { raw, timestampS, verify }: { raw: Uint8Array; timestampS: number | undefined; verify: VerifyEd25519 },
): boolean {
  let message: Uint8Array
  try {
    message = toSignedMessage(key, text, timestampS === undefined ? {} : { timestampS })
  } catch (error) {
    // A cosignature of a text that is not a checkpoint, or without a time.
    if (error instanceof LogError) return false
    throw error
  }
  return key.type === 'cosignature-ml-dsa-44'
    ? isSignedByMlDsa44(key.publicKey, raw, message)
    : verify(key.publicKey, raw, message)
}

/** FIPS 204, pure, with an empty context. */
function isSignedByMlDsa44(publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  try {
    return ml_dsa44.verify(signature, message, publicKey)
  } catch {
    // Wrong length.
    return false
  }
}

/** Undefined if it is too short, or above 2^53 - 1. */
function readTime(bytes: Uint8Array): number | undefined {
  if (bytes.length < TIME_BYTES) return undefined
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0)
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : undefined
}
