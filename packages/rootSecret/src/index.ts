export {
  type Backup,
  type BackupBody,
  BackupError,
  createBackupBody,
  hashBackup,
  nameBackup,
  parseBackup,
  SEALED_SHARE_BYTES,
  toBackupFile,
} from './backup.ts'
export { CALL_TIMEOUT_MS, type CallPeer, callPeer, PeerError, type PeerErrorCode, parseAnswer } from './callPeer.ts'
export { parsePeerEvidence, verifyPeerEvidence } from './peerEvidence.ts'
export { type ParsedRootSecretPolicy, parseRootSecretPolicy, type RootSecretPolicy, toQuotePolicy } from './policy.ts'
export { type VerifyBackupParameters, verifyBackup } from './verifyBackup.ts'
