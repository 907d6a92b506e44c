export {
  type AddCheckpoint,
  COSIGNATURES_HEADER,
  formatAddCheckpoint,
  MAX_ADD_CHECKPOINT_BYTES,
  parseAddCheckpoint,
} from './addCheckpoint.ts'
export {
  arrangeCheckpoint,
  assertCosigned,
  assertLogged,
  type CosignedCheckpoint,
} from './assertCosigned.ts'
export {
  assertConsistency,
  assertInclusion,
  type ConsistencyParameters,
  type InclusionParameters,
} from './checkProofs.ts'
export * from './core.ts'
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
export { listTreeNodes, type TreeNode } from './treeNodes.ts'
export {
  computeTreeRoot,
  createConsistencyProof,
  createInclusionProof,
  createLeafReader,
  listConsistencyNodes,
  listInclusionNodes,
  type ReadNode,
} from './treeProofs.ts'
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
