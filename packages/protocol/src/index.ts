export { concatBytes, equalBytes, isZero } from './bytes.ts'
export { parseCanonicalJson, toCanonicalJson } from './canonicalJson.ts'
export { assertEnclaveConfig, type EnclaveConfig, type EnclaveIssuer, hashEnclaveConfig } from './configHash.ts'
export {
  type AttestationPublished,
  attestationPublishedTopic,
  type EventLog,
  parseAttestationPublished,
  readAttestationPublished,
  serviceAttestationsAbi,
} from './contract.ts'
export { isEd25519Key, verifyEd25519 } from './ed25519.ts'
export {
  type AttestRequest,
  type AttestResponse,
  CALLER_TOLERANCE_MS,
  type CallerAttestation,
  callerHeaders,
  type EnclaveErrorBody,
  enclavePaths,
  MAX_SIGN_ITEMS,
  type OpenSessionRequest,
  type OpenSessionResponse,
  type SignedBatch,
  type SignItem,
  type SignItemError,
  type SignItemResult,
  type SignTransactionsRequest,
  type SignTransactionsResponse,
  toCallerMessage,
} from './enclave.ts'
export {
  type EntropyMessageParameters,
  type EntropyWitness,
  hashEntropy,
  isEntropyWitness,
  MAX_SAMPLE_AGE_MS,
  parseTimestamp,
  SAMPLE_TOLERANCE_MS,
  toEntropyMessage,
} from './entropy.ts'
export { type ProtocolErrorCode, ServiceError, type ServiceErrorOptions } from './errors.ts'
export { isNatural, toU32be, toU64be } from './fields.ts'
export { fromHex, type Hex, isHex, toHex } from './hex.ts'
export {
  type Endpoint,
  type EndpointQuery,
  type EndpointRequest,
  type EndpointResponse,
  type Endpoints,
  isSlug,
  type PathArguments,
  type PathParameters,
  type SignDigestRequest,
  type SignDigestResponse,
  toMethodAndPath,
} from './http.ts'
export { isLoopbackHost, isLoopbackUrl } from './loopback.ts'
export { computeRoot, createInclusionPath, createInclusionPaths, hashTree, type Inclusion } from './merkle.ts'
export { parseJson } from './parseJson.ts'
export { isPlainObject, readMembers } from './plainObject.ts'
export {
  isProofStatus,
  isProofTransition,
  isTerminalProofStatus,
  type ProofStatus,
  proofStatuses,
  proofTransitions,
  type TerminalProofStatus,
} from './proofStatus.ts'
export { type BodyStream, readBounded } from './readBounded.ts'
export { type ReleaseMessageParameters, toReleaseMessage } from './release.ts'
export {
  computeEnclaveAttestReportData,
  computeSnpReportData,
  computeTdxReportData,
  type EnclaveAttestReportDataParameters,
  firstPreviousBatchHash,
  hashBatch,
  type SnpReportDataParameters,
  type TdxReportDataParameters,
} from './reportData.ts'
export type {
  AttestationReceiptV1,
  CoordinatorAttestation,
  EvidenceMode,
  Problem,
  ProofPayload,
  SessionUser,
  SignRequest,
  TransactionPage,
  TransactionSummary,
  WalletInfo,
} from './resources.ts'
export {
  type BackupReportDataParameters,
  type ChallengeResponse,
  computeBackupReportData,
  computeDonorReportData,
  computeJoinerReportData,
  computeRecoveryReportData,
  type DonorReportDataParameters,
  hashRootSecretPolicy,
  hashShare,
  type JoinerReportDataParameters,
  type PeerEvidence,
  type RecoveryReportDataParameters,
  type RecoveryRequest,
  type RecoveryResponse,
  rootSecretPaths,
  type SealedBytes,
  type ShareContextParameters,
  type ShareRequest,
  type ShareResponse,
  type SubmissionContextParameters,
  type TransferRequest,
  type TransferResponse,
  toRootSecretName,
  toShareContext,
  toSubmissionContext,
} from './rootSecret.ts'
export {
  assertEnclaveSettings,
  assertSettingsOf,
  createEnclaveSettings,
  type EnclaveSettings,
  type EntropySetting,
  toEnclaveVersion,
} from './settings.ts'
export { type EcdsaSignature, parseSignature, recoverPublicKey, toAddress } from './signature.ts'
export type { SignResult } from './signResult.ts'
export { assertStatement, hashLeaf, type Statement, toStatementBytes, toStatementText } from './statement.ts'
export { parseStrictJson, type StrictJsonErrorCode, type StrictJsonLimits } from './strictJson.ts'
export { type Tag, tags, toTagBytes } from './tags.ts'
export { type TcbStatus, tcbStatuses } from './tcbStatus.ts'
export {
  encodeSignedTransaction,
  encodeUnsignedTransaction,
  hashSignedTransaction,
  hashUnsignedTransaction,
} from './transaction.ts'
export { assertTxMetadata, parseTxMetadata, type TxMetadata } from './txMetadata.ts'
export { type TimeLimitOptions, withinTimeLimit } from './withinTimeLimit.ts'
