import { verifyEd25519 } from '@countersign/protocol/core'
import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { LogError } from './errors.ts'
import { formatNote, type Note, type NoteSignature, parseNote } from './note.ts'
import type { NoteKey } from './noteKey.ts'
import { toNoteSignature, toSignedMessage } from './signedMessage.ts'

/** A signature that holds, with its key and, if it is a cosignature, its time. */
export type VerifiedSignature = { key: NoteKey; signature: NoteSignature; timestampS: number | undefined }

/** Whether an Ed25519 key signed a message: the protocol's own check, or a faster one. */
export type VerifyEd25519 = (publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean

const TIME_BYTES = 8

/**
 * The text of a note that at least one of these keys signed, and by which of them. Lines of other keys are passed over; a line of one
 * of these keys that does not hold spoils the note.
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
    // Which of the two signed would be a matter of their order.
    if (second !== undefined) throw new LogError('note_key_malformed', 'two keys with one name and id')
    verified.push(verifySignature(key, text, signature, verify))
  }
  if (verified.length === 0) throw new LogError('note_unsigned', 'no key that is known signed the note')
  return { text, verified }
}

/** The signature with its time; `note_signature_invalid` if the key did not sign this text. */
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

/** A text with the signatures of these keys, whose secrets are with the caller. */
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
    // A cosignature below what is no checkpoint, or without a time.
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
    // Of another length.
    return false
  }
}

/** Undefined for what is too short, or beyond 2^53 - 1. */
function readTime(bytes: Uint8Array): number | undefined {
  if (bytes.length < TIME_BYTES) return undefined
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0)
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : undefined
}
