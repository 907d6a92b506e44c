import {
  arrangeCheckpoint,
  type Cosignature,
  findCosignatures,
  isSatisfied,
  LogError,
  type Note,
  type NoteKey,
  parseCheckpoint,
  parseNote,
  type VerifiedSignature,
  verifySignature,
  type WitnessPolicy,
} from '@countersign/log'
import { SAMPLE_TOLERANCE_MS, toHex } from '@countersign/protocol'
import { isEd25519Signature } from '@countersign/service/ed25519'
import type { CosignedNote } from '../store/logs.ts'

/** A checkpoint, and what came for it so far. */
export type Collection = {
  size: number
  text: string
  note: string
  log: VerifiedSignature
  startedAt: number
  cosignatures: Map<string, Cosignature>
  /** Of witnesses that refuse the log, by their keys. */
  refusals: Map<string, string>
}

/**
 * Whether it is further ahead than signatures may be. A quorum of such would move the enclave's time there, so that all it signs next is
 * refused here; one that is ahead must not, where others are enough.
 */
export function isDatedAhead({ timestampS }: Pick<Cosignature, 'timestampS'>, now: number): boolean {
  return 1000 * timestampS - now > SAMPLE_TOLERANCE_MS
}

/** Of a note of the database: its text, and what holds of the lines below it. Undefined where the log did not sign it. */
export function createCollection(
  text: string,
  { key, witnesses, now }: { key: NoteKey; witnesses: readonly string[]; now: number },
): Collection | undefined {
  const note = readNote(text)
  const own = note && readLogSignature(note, key)
  if (note === undefined || own === undefined) return undefined
  const cosignatures = readCosignatures(note, witnesses).filter((cosignature) => !isDatedAhead(cosignature, now))
  return {
    size: parseCheckpoint(note.text).size,
    text: note.text,
    note: arrangeCheckpoint(note.text, { log: own, cosignatures: [] }),
    log: own,
    startedAt: now,
    cosignatures: new Map(cosignatures.map((cosignature) => [cosignature.witness, cosignature])),
    refusals: new Map(),
  }
}

/** Whether so many refuse that no quorum is left. */
export function isRefusedBy({ refusals }: Collection, policy: WitnessPolicy): boolean {
  const others = policy.witnesses.filter((witness) => !refusals.has(witness))
  return !isSatisfied(policy, others)
}

/** In the order of the policy. */
export function toCosignedNote({ size, text, log, cosignatures }: Collection, policy: WitnessPolicy): CosignedNote {
  const ordered = policy.witnesses.flatMap((witness) => cosignatures.get(witness) ?? [])
  return { size, note: arrangeCheckpoint(text, { log, cosignatures: ordered }) }
}

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
function readCosignatures(note: Note, witnesses: readonly string[]): Cosignature[] {
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
