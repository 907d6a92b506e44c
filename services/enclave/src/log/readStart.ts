import {
  assertFrontier,
  computeFrontierRoot,
  emptyFrontier,
  type Frontier,
  LogError,
  type NoteKey,
  openNote,
  parseCheckpoint,
} from '@countersign/log/core'
import { equalBytes, fromHex, type LogRequest } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'

/**
 * Reads where a log continues: the tree of a checkpoint signed by the log's own key, so by an enclave with this root secret. The enclave
 * can't know whether it is the newest; the witnesses can.
 */
export function readStart(
  { checkpoint, hashes }: Pick<NonNullable<LogRequest['start']>, 'checkpoint' | 'hashes'>,
  key: NoteKey,
): Frontier {
  if (checkpoint === null) {
    if (hashes.length > 0) throw refused('the empty tree has no frontier')
    return emptyFrontier
  }
  try {
    const { origin, size, root, extensions } = parseCheckpoint(openNote(checkpoint, [key]).text)
    if (origin !== key.name || extensions.length > 0) throw refused('the checkpoint is of another log')
    const frontier = { size, hashes: hashes.map(fromHex) }
    assertFrontier(frontier)
    if (!equalBytes(computeFrontierRoot(frontier), root)) throw refused('the frontier is of another tree')
    return frontier
  } catch (error) {
    if (error instanceof LogError) throw refused(error.code, error)
    throw error
  }
}

function refused(details: string, cause?: unknown) {
  return new EnclaveError('log_refused', 'the log cannot go on from there', { details, cause })
}
