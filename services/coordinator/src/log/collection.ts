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

/** A checkpoint with its cosignatures and refusals so far. */
export type Collection = {
  size: number
  text: string
  note: string
  log: VerifiedSignature
  startedAt: number
  cosignatures: Map<string, Cosignature>
  /** Reasons of witnesses that refuse the log, by their keys. */
  refusals: Map<string, string>
}

/**
 * Whether a cosignature's time is further ahead than the tolerance for signatures. A quorum of such cosignatures would move the enclave's
 * clock, and this service would then reject everything that the enclave signs. A single one is ignored if others suffice.
 */
export function isDatedAhead({ timestampS }: Pick<Cosignature, 'timestampS'>, now: number): boolean {
  return 1000 * timestampS - now > SAMPLE_TOLERANCE_MS
}

/** Parses a stored note with its valid cosignatures. Returns undefined if the log's signature is missing or invalid. */
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

/** Whether the witnesses that don't refuse are too few for a quorum. */
export function isRefusedBy({ refusals }: Collection, policy: WitnessPolicy): boolean {
  const others = policy.witnesses.filter((witness) => !refusals.has(witness))
  return !isSatisfied(policy, others)
}

/** The note with its cosignatures in the policy's order. */
export function toCosignedNote({ size, text, log, cosignatures }: Collection, policy: WitnessPolicy): CosignedNote {
  const ordered = policy.witnesses.flatMap((witness) => cosignatures.get(witness) ?? [])
  return { size, note: arrangeCheckpoint(text, { log, cosignatures: ordered }) }
}

/* These functions run several times per signature on the main thread, so they use the faster Ed25519 implementation. */

/**
 * Reads a witness's cosignature of `text` from its response. The result has the name that we know the witness by: a name chosen by the
 * witness could pass for another witness or for the log. Returns undefined if the cosignature is missing or invalid.
 */
export function readCosignature(lines: string, { key, text }: { key: NoteKey; text: string }): Cosignature | undefined {
  // Longer lines are post-quantum cosignatures. Policies don't name their keys, and decoding them is slow.
  const short = lines.split('\n').filter(({ length }) => length <= MAX_LINE)
  const note = readNote(`${text}\n${short.join('\n')}`)
  // An empty line in the response would move part of it into the text.
  const [found] = note?.text === text ? readCosignatures(note, [toHex(key.publicKey)]) : []
  return found && { ...found, key, signature: { ...found.signature, name: key.name, keyId: key.id } }
}

/** Returns the valid cosignatures of these witnesses (hex), or none if one is invalid. */
function readCosignatures(note: Note, witnesses: readonly string[]): Cosignature[] {
  return unlessMalformed(() => findCosignatures(note, witnesses, isEd25519Signature)) ?? []
}

/** Returns the log's own signature, or undefined if it is missing or invalid. */
export function readLogSignature({ text, signatures }: Note, key: NoteKey): VerifiedSignature | undefined {
  const signature = signatures.find(({ name, keyId }) => name === key.name && keyId === key.id)
  return signature && unlessMalformed(() => verifySignature(key, text, signature, isEd25519Signature))
}

/** Returns undefined if the text is not a note. */
export function readNote(text: string): Note | undefined {
  return unlessMalformed(() => parseNote(text))
}

/** Enough for a name of 255 characters and an Ed25519 cosignature in base64. */
const MAX_LINE = 512

function unlessMalformed<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}
