import {
  type Cosignature,
  LogError,
  type Note,
  type NoteKey,
  type NoteSignature,
  parseNote,
  toSignedMessage,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { isEd25519Signature } from '../ed25519.ts'

/*
 * What `verifySignature` of the log's package does, by libsodium: this runs several times for every signature of a user, in the thread that
 * answers them.
 */

const TIME_BYTES = 8
const SIGNATURE_BYTES = 64

/** The cosignature in the lines that a witness answered, below this text. Undefined where there is none, or one that does not hold. */
export function readCosignature(lines: string, { key, text }: { key: NoteKey; text: string }): Cosignature | undefined {
  const note = readNote(`${text}\n${lines}`)
  // An empty line in the answer would make a part of it text.
  return note?.text === text ? findCosignature(note, key) : undefined
}

/** The newest cosignature of this key below a note; undefined where one of them does not hold. */
export function findCosignature({ text, signatures }: Note, key: NoteKey): Cosignature | undefined {
  const own = signatures.filter(({ name, keyId }) => name === key.name && keyId === key.id)
  const read = own.map((signature) => verifyCosignature(signature, { key, text }))
  if (read.includes(undefined)) return undefined
  return (read as Cosignature[]).toSorted((left, right) => right.timestampS - left.timestampS)[0]
}

/** The signature of the log itself. */
export function findLogSignature({ text, signatures }: Note, key: NoteKey) {
  const own = signatures.filter(({ name, keyId }) => name === key.name && keyId === key.id)
  const message = new TextEncoder().encode(text)
  const isSigned = own.every(
    ({ bytes }) => bytes.length === SIGNATURE_BYTES && isEd25519Signature(key.publicKey, message, bytes),
  )
  const [signature] = own
  return signature !== undefined && isSigned ? { key, signature, timestampS: undefined } : undefined
}

/** Undefined for what is no note. */
export function readNote(text: string): Note | undefined {
  try {
    return parseNote(text)
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

function verifyCosignature(
  signature: NoteSignature,
  { key, text }: { key: NoteKey; text: string },
): Cosignature | undefined {
  const { bytes } = signature
  if (bytes.length !== TIME_BYTES + SIGNATURE_BYTES) return undefined
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0)
  if (time === 0n || time > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
  const timestampS = Number(time)
  const message = toSignedMessage(key, text, { timestampS })
  if (!isEd25519Signature(key.publicKey, message, bytes.subarray(TIME_BYTES))) return undefined
  return { key, signature, witness: toHex(key.publicKey), timestampS }
}
