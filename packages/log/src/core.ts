/* The entry point for the enclave: notes, checkpoints, entries and cosignatures, without proofs, tiles and witness statements. */

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
  type TableEntry,
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
  assertWitnessPolicy,
  type Cosignature,
  findCosignatures,
  isSatisfied,
  readQuorumTimes,
  type WitnessPolicy,
} from './witnessPolicy.ts'
