export {
  type Backup,
  type BackupBody,
  BackupError,
  createBackupBody,
  hashBackup,
  nameBackup,
  parseBackup,
  toBackupFile,
  type VerifyBackupParameters,
  verifyBackup,
  verifyPeerEvidence,
} from './backup.ts'
export { CALL_TIMEOUT_MS, type CallPeer, callPeer, PeerError, type PeerErrorCode, parseAnswer } from './callPeer.ts'
export {
  type ChallengeResponse,
  challengeResponse,
  type PeerEvidence,
  type RecoveryRequest,
  type RecoveryResponse,
  recoveryRequest,
  recoveryResponse,
  SEALED_SHARE_BYTES,
  type ShareRequest,
  type ShareResponse,
  shareRequest,
  shareResponse,
  type TransferRequest,
  type TransferResponse,
  transferRequest,
  transferResponse,
} from './messages.ts'
export { type ParsedRootSecretPolicy, parseRootSecretPolicy, type RootSecretPolicy, toQuotePolicy } from './policy.ts'
