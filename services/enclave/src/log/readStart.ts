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
 * Where a log goes on: the tree of a checkpoint that its own key signed, which is to say another enclave of this root secret. That it is
 * the newest one nobody here can tell: the witnesses can.
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
