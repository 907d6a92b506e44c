export {
  type Backup,
  type BackupBody,
  BackupError,
  createBackupBody,
  hashBackup,
  nameBackup,
  parseBackup,
  parsePeerEvidence,
  SEALED_SHARE_BYTES,
  toBackupFile,
  type VerifyBackupParameters,
  verifyBackup,
  verifyPeerEvidence,
} from './backup.ts'
export { CALL_TIMEOUT_MS, type CallPeer, callPeer, PeerError, type PeerErrorCode, parseAnswer } from './callPeer.ts'
export { type ParsedRootSecretPolicy, parseRootSecretPolicy, type RootSecretPolicy, toQuotePolicy } from './policy.ts'
