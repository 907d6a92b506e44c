import { isNatural } from '@countersign/protocol/core'
import { parseHashLines, toBase64 } from './base64.ts'
import { parseDecimal } from './decimal.ts'
import { LogError } from './errors.ts'
import { MAX_NOTE_BYTES } from './note.ts'

/** A log's request to a witness, c2sp.org/tlog-witness: to cosign this checkpoint, which continues the one of `oldSize`. */
export type AddCheckpoint = {
  /** The size of the newest checkpoint that the witness cosigned; 0 if none. */
  oldSize: number
  /** The consistency proof from the old size to that of the checkpoint. */
  proof: readonly Uint8Array[]
  /** A note with the log's signature. */
  checkpoint: string
}

/**
 * A header that is not in the specification: `ed25519` if the log wants only this kind of cosignature. Witnesses that don't know it return
 * every kind.
 */
export const COSIGNATURES_HEADER = 'countersign-cosignatures'

/** The longest request body: the lines of the proof, and a note. */
export const MAX_ADD_CHECKPOINT_BYTES = MAX_NOTE_BYTES + 4_096

export function formatAddCheckpoint({ oldSize, proof, checkpoint }: AddCheckpoint): string {
  if (!isNatural(oldSize)) throw malformed('the old size')
  return [`old ${oldSize}`, ...proof.map(toBase64), '', checkpoint].join('\n')
}

/** Parses the body of a request. Doesn't verify the checkpoint. */
export function parseAddCheckpoint(body: Uint8Array): AddCheckpoint {
  let text: string
  try {
    // Keeps a byte order mark, which is then rejected as part of the old size.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    throw malformed('not UTF-8 text')
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
