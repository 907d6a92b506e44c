export { approval } from './approval.ts'
export {
  type AttestationPublished,
  attestationPublishedTopic,
  type EventLog,
  parseAttestationPublished,
  readAttestationPublished,
  serviceAttestationsAbi,
} from './contract.ts'
export {
  attestResponse,
  loggedItemsResponse,
  logResponse,
  openSessionResponse,
  releaseResponse,
  signItemsResponse,
  vaultResponse,
} from './enclaveAnswers.ts'
export {
  type Endpoint,
  type EndpointQuery,
  type EndpointRequest,
  type EndpointResponse,
  type Endpoints,
  endpoints,
  type SignDigestRequest,
  type SignOffChainResponse,
  toSignEndpoints,
  type WalletUse,
} from './http.ts'
export {
  type CheckpointEvent,
  checkpointTopic,
  parseCheckpointEvent,
  toLogId,
  toSizeTopic,
} from './logWitness.ts'
export { ownerOpening } from './owner.ts'
export { assertOpening, MAX_OPENING_BYTES, parseOpening, parseOwnerOpening, withholdHalf } from './parseOpening.ts'
export { parseRequest } from './parseRequest.ts'
export { isSlug, MAX_RETURN_TO_LENGTH, type PathArguments, type PathParameters, toMethodAndPath } from './path.ts'
export { policyRefusal } from './policyRefusal.ts'
export {
  isProofStatus,
  isProofTransition,
  isTerminalProofStatus,
  type ProofStatus,
  proofStatuses,
  proofTransitions,
  type TerminalProofStatus,
} from './proofStatus.ts'
export {
  type AttestationReceiptV2,
  type BatchBlock,
  type CoordinatorBlock,
  MAX_BLOCK_BYTES,
  type ReleaseBlock,
} from './receiptV2.ts'
export {
  toReleaseMessage,
  toReleaseMessageV2,
} from './release.ts'
export {
  type AttestAddressResponse,
  type AttestationReceiptV1,
  attestAddressResponse,
  type CoordinatorAttestation,
  coordinatorAttestation,
  type EvidenceMode,
  type LogInfo,
  type LoginProvider,
  logInfo,
  loginProvider,
  loginProviders,
  logList,
  okResponse,
  type Problem,
  type ProofAnchor,
  type ProofPayload,
  policy,
  problem,
  proofPayload,
  type SessionUser,
  type SignDigestResponse,
  type SignRequest,
  sessionInfo,
  sessionList,
  sessionUser,
  signDigestResponse,
  slug,
  type TransactionPage,
  type TransactionSummary,
  tokenSession,
  transactionPage,
  transactionSummary,
  type VaultBudgetInfo,
  type VaultInfo,
  vaultBudgetInfo,
  vaultInfo,
  vaultList,
  type WalletInfo,
  walletInfo,
} from './resources.ts'
export { shownOpening } from './shownOpening.ts'
export { stamp } from './stamp.ts'
export { hashSubject, SUMMARY_DATA_BYTES, toEventHash, toSignedDigest, toSignedSummary } from './subject.ts'
export { toChecksumAddress } from './toChecksumAddress.ts'
export { txMetadata } from './txMetadata.ts'
export { typedData } from './typedData.ts'
export { typedDataMember } from './typedDataTypes.ts'
export {
  parseWebhookKey,
  toWebhookKeyMessage,
  toWebhookKeyText,
  toWebhookMessage,
  type WebhookData,
  type WebhookEvent,
  type WebhookType,
} from './webhook.ts'

// Part of the enclave's entry point too.

export { offChainKinds } from './contents.ts'
export * from './core.ts'
