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
  /** The log's signature. */
  log: VerifiedSignature
  /** At most one per witness, in the order of the policy. */
  cosignatures: readonly Cosignature[]
}

/**
 * Returns the checkpoint of a note that the log signed and a quorum cosigned. The checkpoint's origin must be the name of the log's key.
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
  if (checkpoint.origin !== log.name) throw new LogError('note_unsigned', 'the checkpoint belongs to another log')
  const cosignatures = findCosignatures(parsed, policy.witnesses)
  const cosigners = cosignatures.map(({ witness }) => witness)
  if (!isSatisfied(policy, cosigners)) {
    const details = `${cosignatures.length} of ${policy.quorum}`
    throw new LogError('quorum_missing', 'too few witnesses cosigned', { details })
  }
  return { checkpoint, log: verified[0] as VerifiedSignature, cosignatures }
}

/** Formats the checkpoint with only these signatures, the log's first, so that equal signatures give equal text. */
export function arrangeCheckpoint(
  text: string,
  { log, cosignatures }: Pick<CosignedCheckpoint, 'log' | 'cosignatures'>,
): string {
  return formatNote({ text, signatures: [log, ...cosignatures].map(({ signature }) => signature) })
}

/** Verifies a whole `tlog-proof`: the leaf is in the log, and a quorum cosigned the checkpoint. */
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
