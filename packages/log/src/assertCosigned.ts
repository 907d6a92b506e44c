import { assertInclusion } from './checkProofs.ts'
import { type Checkpoint, parseCheckpoint } from './checkpoint.ts'
import { LogError } from './errors.ts'
import { formatNote, type Note, parseNote } from './note.ts'
import type { NoteKey } from './noteKey.ts'
import { openNote, type VerifiedSignature } from './openNote.ts'
import { parseTlogProof } from './tlogProof.ts'
import {
  assertWitnessPolicy,
  type Cosignature,
  findCosignatures,
  isSatisfied,
  type WitnessPolicy,
} from './witnessPolicy.ts'

export type CosignedCheckpoint = {
  checkpoint: Checkpoint
  /** By the log itself. */
  log: VerifiedSignature
  /** In the order of the policy, one of each witness. */
  cosignatures: readonly Cosignature[]
}

/**
 * The checkpoint of a note that the log signed and a quorum cosigned. The name of the log's key is the origin.
 *
 * @example
 * const { checkpoint } = assertCosigned(note, { log: parseVkey(vkey), policy })
 */
export function assertCosigned(
  note: string | Note,
  { log, policy }: { log: NoteKey; policy: WitnessPolicy },
): CosignedCheckpoint {
  assertWitnessPolicy(policy)
  const parsed = typeof note === 'string' ? parseNote(note) : note
  const { text, verified } = openNote(parsed, [log])
  const checkpoint = parseCheckpoint(text)
  if (checkpoint.origin !== log.name) throw new LogError('note_unsigned', 'the checkpoint is of another log')
  const cosignatures = findCosignatures(parsed, policy.witnesses)
  const cosigners = cosignatures.map(({ witness }) => witness)
  if (!isSatisfied(policy, cosigners)) {
    const details = `${cosignatures.length} of ${policy.quorum}`
    throw new LogError('quorum_missing', 'too few witnesses cosigned', { details })
  }
  return { checkpoint, log: verified[0] as VerifiedSignature, cosignatures }
}

/** A checkpoint with the signatures that count and no other, the log's first: one set of them is one text. */
export function arrangeCheckpoint(
  text: string,
  { log, cosignatures }: Pick<CosignedCheckpoint, 'log' | 'cosignatures'>,
): string {
  return formatNote({ text, signatures: [log, ...cosignatures].map(({ signature }) => signature) })
}

/** This leaf is in the log, under a checkpoint that a quorum cosigned: a whole `tlog-proof`, judged. */
export function assertLogged(
  proofText: string,
  { leaf, log, policy }: { leaf: Uint8Array; log: NoteKey; policy: WitnessPolicy },
): CosignedCheckpoint & { index: number } {
  const { index, proof, checkpoint: note } = parseTlogProof(proofText)
  const cosigned = assertCosigned(note, { log, policy })
  const { size, root } = cosigned.checkpoint
  assertInclusion({ leaf, index, size, root, proof })
  return { ...cosigned, index }
}
