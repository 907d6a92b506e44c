import {
  assertFrontier,
  computeFrontierRoot,
  decodeLogEntry,
  emptyFrontier,
  type Frontier,
  LogError,
  type NoteKey,
  openNote,
  parseCheckpoint,
} from '@countersign/log/core'
import { equalBytes, fromHex, hashTreeLeaf, hashTreeNode, type LogRequest } from '@countersign/protocol/core'
import { createHexTable, type HexTable } from '@countersign/service/hexTable'
import { EnclaveError } from '../errors.ts'

/**
 * Reads where a log continues: the tree of a checkpoint signed by the log's own key, so by an enclave with this root secret. The enclave
 * can't know whether it is the newest; the witnesses can.
 */
export function readStart(
  { checkpoint, hashes, table }: Pick<NonNullable<LogRequest['start']>, 'checkpoint' | 'hashes' | 'table'>,
  key: NoteKey,
  states: readonly string[],
): { frontier: Frontier; table: HexTable } {
  if (checkpoint === null) {
    if (hashes.length > 0) throw refused('the empty tree has no frontier')
    // Only an empty log has an empty table by itself.
    if (table !== undefined || states.length > 0) throw refused('the empty tree has no table')
    return { frontier: emptyFrontier, table: createHexTable() }
  }
  try {
    const { origin, size, root, extensions } = parseCheckpoint(openNote(checkpoint, [key]).text)
    if (origin !== key.name || extensions.length > 0) throw refused('the checkpoint is of another log')
    const frontier = { size, hashes: hashes.map(fromHex) }
    assertFrontier(frontier)
    if (!equalBytes(computeFrontierRoot(frontier), root)) throw refused('the frontier is of another tree')
    return { frontier, table: readTable(frontier, table, states) }
  } catch (error) {
    if (error instanceof LogError) throw refused(error.code, error)
    throw error
  }
}

/** The table must be the one in the last entry of the tree. An earlier table would give spent budgets back. */
function readTable(
  { size, hashes }: Frontier,
  last: NonNullable<LogRequest['start']>['table'],
  states: readonly string[],
): HexTable {
  if (last === undefined) throw refused('the last entry of the tree is missing')
  // The last leaf is in the smallest complete subtree, where all its siblings are to the left.
  const path = last.path.map(fromHex)
  const isWholePath = size % 2 ** path.length === 0 && size % 2 ** (path.length + 1) !== 0
  const node = path.reduce((right, left) => hashTreeNode(left, right), hashTreeLeaf(fromHex(last.entry)))
  if (!isWholePath || !equalBytes(node, hashes.at(-1) ?? new Uint8Array()))
    throw refused('not the last entry of the tree')
  const entry = decodeLogEntry(fromHex(last.entry))
  if (entry.kind !== 'table') throw refused('the last entry of the tree is not the root of a table')
  // Two coordinators may send states at the same time.
  if (entry.rows !== states.length) {
    throw new EnclaveError('states_missing', 'the states of the vaults with budgets are missing')
  }
  const table = createHexTable()
  for (const [row, state] of states.entries()) table.set(row, state)
  if (table.computeRoot() !== entry.root) throw refused('the states are of another table')
  return table
}

function refused(details: string, cause?: unknown) {
  return new EnclaveError('log_refused', 'the log cannot go on from there', { details, cause })
}
