import {
  arrangeCheckpoint,
  type Cosignature,
  isSatisfied,
  type NoteKey,
  parseCheckpoint,
  type VerifiedSignature,
  type WitnessPolicy,
} from '@countersign/log'
import { SAMPLE_TOLERANCE_MS } from '@countersign/protocol'
import type { CosignedNote } from '../ports.ts'
import { readCosignatures, readLogSignature, readNote } from './readCosignature.ts'

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
