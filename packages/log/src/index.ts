export {
  type AddCheckpoint,
  COSIGNATURES_HEADER,
  formatAddCheckpoint,
  MAX_ADD_CHECKPOINT_BYTES,
  parseAddCheckpoint,
} from './addCheckpoint.ts'
export {
  assertConsistency,
  assertInclusion,
  type ConsistencyParameters,
  type InclusionParameters,
} from './checkProofs.ts'
export { type Checkpoint, emptyRoot, formatCheckpoint, parseCheckpoint } from './checkpoint.ts'
export { LogError, type LogErrorCode } from './errors.ts'
export { appendLeaves, assertFrontier, computeFrontierRoot, emptyFrontier, type Frontier } from './frontier.ts'
export {
  type BootEntry,
  decodeLogEntry,
  encodeLogEntry,
  hashLogEntry,
  LOG_ENTRY_BYTES,
  type LogEntry,
  readLogEntryKind,
  type StatementEntry,
  toLogEntryHex,
} from './logEntry.ts'
export {
  formatNote,
  formatSignatureLines,
  MAX_NOTE_BYTES,
  MAX_NOTE_SIGNATURES,
  type Note,
  type NoteSignature,
  parseNote,
} from './note.ts'
export { createNoteKey, type NoteKey, type NoteKeyType, parseVkey, parseWitnessKey, toVkey } from './noteKey.ts'
export { openNote, signNote, type VerifiedSignature, type VerifyEd25519, verifySignature } from './openNote.ts'
export { type SigningTime, toNoteSignature, toSignedMessage } from './signedMessage.ts'
export {
  createTileReader,
  decodeBundle,
  decodeTile,
  type EntryBundle,
  encodeBundle,
  encodeTile,
  listTiles,
  parseTilePath,
  TILE_HEIGHT,
  TILE_WIDTH,
  type Tile,
  toBundlePath,
  toTile,
  toTilePath,
} from './tiles.ts'
export { formatTlogProof, parseTlogProof, type TlogProof } from './tlogProof.ts'
export {
  computeTreeRoot,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  listConsistencyNodes,
  listInclusionNodes,
  listTreeNodes,
  type ReadNode,
  type TreeNode,
} from './treeNodes.ts'
export {
  arrangeCheckpoint,
  assertCosigned,
  assertLogged,
  assertWitnessPolicy,
  type Cosignature,
  type CosignedCheckpoint,
  findCosignatures,
  isSatisfied,
  readQuorumTimes,
  type WitnessPolicy,
} from './witnessPolicy.ts'
export {
  formatWitnessStatement,
  hashOrigin,
  MAX_WITNESS_STATEMENT_BYTES,
  openWitnessStatement,
  parseStatementPath,
  toStatementMessage,
  toStatementPath,
  type WitnessStatement,
} from './witnessStatement.ts'
