/* The entry point for the enclave. It excludes the HTTP interface, the contract and the webhooks. */

export {
  type Approval,
  AUTHENTICATOR_DATA_BYTES,
  approvals,
  type KeyApproval,
  MAX_CLIENT_DATA_BYTES,
  type PasskeyApproval,
} from './approval.ts'
export type { ApprovalReason, AuthenticatorDataReason, ClientDataReason } from './approvalReason.ts'
export {
  type Authorization,
  assertAuthorizationAllowed,
  hashAuthorization,
  hashSignedAuthorization,
  parseAuthorization,
} from './authorization.ts'
export { concatBytes, equalBytes, isZero } from './bytes.ts'
export { parseCanonicalJson, toCanonicalJson } from './canonicalJson.ts'
export { type Chain, chains, nameChain, nameCoin, toCoins, UNKNOWN_COIN } from './chains.ts'
export { assertEnclaveConfig, type EnclaveConfig, type EnclaveIssuer, hashEnclaveConfig } from './configHash.ts'
export {
  type ContentChain,
  findContentChain,
  hashContent,
  type MessageContent,
  type OffChainContent,
  parseOffChainContent,
  pickContent,
} from './contents.ts'
export {
  type AnyWitness,
  type DrandBeacon,
  type DrandWitness,
  hashWitness,
  isDrandWitness,
  isRoundSigned,
  parseDrandBeacon,
  quicknet,
  toRoundTimeMs,
  verifyDrandWitness,
} from './drand.ts'
export { isEd25519Key, verifyEd25519 } from './ed25519.ts'
export {
  type AddressItem,
  type AttestRequest,
  type AuthorizationItem,
  attestRequest,
  CALLER_TOLERANCE_MS,
  type CallerAttestation,
  callerHeaders,
  enclavePaths,
  type LogRequest,
  logRequest,
  MAX_SIGN_ITEMS,
  MAX_STATES_PER_CALL,
  type OffChainItem,
  type OpenSessionRequest,
  openSessionRequest,
  type ReleaseRequest,
  type RevocationItem,
  releaseRequest,
  type SignItem,
  type SignItemsRequest,
  signItems,
  signItemsRequest,
  type TransactionItem,
  toCallerMessage,
  type VaultRequest,
  type VaultUse,
  vaultRequest,
} from './enclave.ts'
export type {
  AppendedEntries,
  AttestResponse,
  EnclaveErrorBody,
  LeafPosition as Placed,
  LoggedItemsResponse,
  LogResponse,
  OpenBatch,
  OpenSessionResponse,
  ReleaseResponse,
  SignedBatch,
  SignedStatement,
  SignItemError,
  SignItemResult,
  SignItemsResponse,
  VaultResponse,
} from './enclaveAnswers.ts'
export {
  type EntropyWitness,
  hashEntropy,
  isEntropyWitness,
  MAX_SAMPLE_AGE_MS,
  parseTimestamp,
  SAMPLE_TOLERANCE_MS,
  toEntropyMessage,
} from './entropy.ts'
export { type ProtocolErrorCode, ServiceError, type ServiceErrorOptions } from './errors.ts'
export { isMajority, isNatural, toU32be, toU64be } from './fields.ts'
export { hashOwner } from './hashOwner.ts'
export {
  fromHex,
  fromPrefixedHex,
  type Hex,
  isHex,
  isLowerPrefixedHex,
  toHex,
  toPrefixedHex,
} from './hex.ts'
export { isAddress } from './isAddress.ts'
export { isPrefixedHex } from './isPrefixedHex.ts'
export {
  type ApprovalKind,
  hasSignature,
  isOffChain,
  isUnlimitedKind,
  type Kind,
  kinds,
  type OffChainKind,
  type SignatureKind,
  signatureKinds,
  subjects,
  type UnlimitedKind,
} from './kinds.ts'
export { hashLogin, toSessionName } from './login.ts'
export { isLoopbackHost, isLoopbackUrl, isSafeUrl } from './loopback.ts'
export {
  computeRoot,
  createInclusionPath,
  createInclusionPaths,
  HASH_BYTES,
  hashTree,
  hashTreeLeaf,
  hashTreeNode,
  type Inclusion,
} from './merkle.ts'
export { hashMessage, MAX_OFF_CHAIN_BYTES } from './message.ts'
export {
  commitContent,
  commitSignature,
  computeCommitment,
  type Opening,
  type OpeningContent,
  type OpeningSignature,
} from './opening.ts'
export type { OwnerIdentity, OwnerOpening } from './owner.ts'
export { parseJson } from './parseJson.ts'
export { isPlainObject, readMembers } from './plainObject.ts'
export type { PolicyRefusal, RequestReason, RuleReason, RuleVerdict } from './policyRefusal.ts'
export * as preimages from './preimages.ts'
export { type BodyStream, isBodyTooLarge, readBounded } from './readBounded.ts'
export {
  computeEnclaveAttestReportData,
  computeSnpReportData,
  computeSnpReportDataV2,
  computeTdxReportData,
  firstPreviousBatchHash,
  hashBatch,
  ML_DSA_65_KEY_BYTES,
  ML_DSA_65_SIGNATURE_BYTES,
} from './reportData.ts'
export {
  computeBackupReportData,
  computeDonorReportData,
  computeJoinerReportData,
  computeRecoveryReportData,
  hashRootSecretPolicy,
  hashShare,
  rootSecretPaths,
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
  isEntropyForm,
  isEntropySetting,
  isOrigin,
  type LogSetting,
  MAX_WITNESSES,
  toEnclaveVersion,
} from './settings.ts'
export { type EcdsaSignature, parseSignature, recoverPublicKey, toAddress } from './signature.ts'
export type { SignResult } from './signResult.ts'
export { MAX_RULES, MAX_STAMP_AGE_MS, ruleIndex, STAMP_TOLERANCE_MS, type Stamp, toStampBytes } from './stamp.ts'
export { assertStatement, hashLeaf, type Statement, toStatementBytes, toStatementText } from './statement.ts'
export { assertStatementV2, type StatementV2 } from './statementV2.ts'
export { parseStrictJson, type StrictJsonErrorCode, type StrictJsonLimits } from './strictJson.ts'
export type {
  AddressSubject,
  AuthorizationSubject,
  OffChainSubject,
  RevocationSubject,
  Signed,
  SignedSummary,
  TransactionSubject,
} from './subject.ts'
export { type Preimage, type Tag, tags, toPreimage, toTagBytes } from './tags.ts'
export { type TcbStatus, tcbStatuses } from './tcbStatus.ts'
export {
  encodeSignedTransaction,
  encodeUnsignedTransaction,
  hashParsedTransaction,
  hashSignedTransaction,
  hashUnsignedTransaction,
} from './transaction.ts'
export { assertTxMetadata, parseTxMetadata, type TxMetadata } from './txMetadata.ts'
export { hashTypedData, type TypedData } from './typedData.ts'
export type { TypedDataMember } from './typedDataTypes.ts'
export {
  type ApprovedRequest,
  computeApprovalChallenge,
  toAgentApprovalBytes,
  toVaultKeyIdInfo,
  toVaultKeyInfo,
} from './vault.ts'
export { type VaultBudget, vaultBudget } from './vaultBudget.ts'
export { type TimeLimitOptions, withinTimeLimit } from './withinTimeLimit.ts'
