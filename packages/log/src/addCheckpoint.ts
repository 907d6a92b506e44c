import { isNatural } from '@countersign/protocol/core'
import { parseHashLines, toBase64 } from './base64.ts'
import { parseDecimal } from './decimal.ts'
import { LogError } from './errors.ts'
import { MAX_NOTE_BYTES } from './note.ts'

/** What a log asks of a witness, c2sp.org/tlog-witness: to cosign this checkpoint, which continues the one of `oldSize`. */
export type AddCheckpoint = {
  /** Of the newest checkpoint that the witness cosigned; 0 if it has cosigned none. */
  oldSize: number
  /** From the old size to that of the checkpoint. */
  proof: readonly Uint8Array[]
  /** A note with the log's signature. */
  checkpoint: string
}

/**
 * A header of such a request that the specification does not have: `ed25519` where the log wants no other kind of cosignature. Witnesses
 * that do not know it answer every kind.
 */
export const COSIGNATURES_HEADER = 'countersign-cosignatures'

/** The longest body that a witness reads: the lines of the proof, and a note. */
export const MAX_ADD_CHECKPOINT_BYTES = MAX_NOTE_BYTES + 4_096

/** The body of a request. */
export function formatAddCheckpoint({ oldSize, proof, checkpoint }: AddCheckpoint): string {
  if (!isNatural(oldSize)) throw malformed('the old size')
  return [`old ${oldSize}`, ...proof.map(toBase64), '', checkpoint].join('\n')
}

/** Reads the body of a request. The checkpoint in it has yet to be read and opened. */
export function parseAddCheckpoint(body: Uint8Array): AddCheckpoint {
  let text: string
  try {
    // With its mark at the beginning, if it has one: that is no old size.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    throw malformed('no text in UTF-8')
  }
  const split = text.indexOf('\n\n')
  if (split < 0) throw malformed('no empty line')
  const [oldLine = '', ...hashLines] = text.slice(0, split).split('\n')
  const oldSize = oldLine.startsWith('old ') ? parseDecimal(oldLine.slice('old '.length)) : undefined
  if (oldSize === undefined) throw malformed('the old size')
  return { oldSize, proof: parseHashLines(hashLines, malformed), checkpoint: text.slice(split + 2) }
}

function malformed(details: string) {
  return new LogError('add_checkpoint_malformed', 'malformed request', { details })
}
