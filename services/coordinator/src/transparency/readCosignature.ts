import {
  type Cosignature,
  findCosignatures,
  LogError,
  type Note,
  type NoteKey,
  parseNote,
  type VerifiedSignature,
  verifySignature,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { isEd25519Signature } from '@countersign/service/ed25519'

/* Everything here runs several times for each signature of a user, in the thread that answers them all: by the faster Ed25519. */

/**
 * The cosignature in the lines that a witness answered, below this text, as a line of the name that we have of it: by one that the witness
 * chooses, it could pass for another, or for the log. Undefined where there is none, or one that does not hold.
 */
export function readCosignature(lines: string, { key, text }: { key: NoteKey; text: string }): Cosignature | undefined {
  // Longer ones are cosignatures of the quantum-safe kind, which policies do not name: to decode them takes longer than all the rest.
  const short = lines.split('\n').filter(({ length }) => length <= MAX_LINE)
  const note = readNote(`${text}\n${short.join('\n')}`)
  // An empty line in the answer would make a part of it text.
  const [found] = note?.text === text ? readCosignatures(note, [toHex(key.publicKey)]) : []
  return found && { ...found, key, signature: { ...found.signature, name: key.name, keyId: key.id } }
}

/** Those of these witnesses (hex) that hold, below a note; none where one does not. */
export function readCosignatures(note: Note, witnesses: readonly string[]): Cosignature[] {
  return unlessMalformed(() => findCosignatures(note, witnesses, isEd25519Signature)) ?? []
}

/** The signature of the log itself; undefined where there is none that holds. */
export function readLogSignature({ text, signatures }: Note, key: NoteKey): VerifiedSignature | undefined {
  const signature = signatures.find(({ name, keyId }) => name === key.name && keyId === key.id)
  return signature && unlessMalformed(() => verifySignature(key, text, signature, isEd25519Signature))
}

/** Undefined for what is no note. */
export function readNote(text: string): Note | undefined {
  return unlessMalformed(() => parseNote(text))
}

/** A name of 255 characters, and an Ed25519 cosignature in base64. */
const MAX_LINE = 512

function unlessMalformed<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}
