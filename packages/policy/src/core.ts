/* The entry point for the enclave: the rules of vaults and their checks, without the texts for users. */

export type { Approval, ApprovalReason, RequestReason, RuleReason, RuleVerdict } from '@countersign/protocol/core'
export { assertApprovals, hashApprovals } from './approval.ts'
export {
  assertPolicy,
  assertPolicyForm,
  createPolicy,
  hashPolicy,
  MAX_POLICY_BYTES,
  normalisePolicy,
  parsePolicy,
  toPolicyBytes,
} from './assertPolicy.ts'
export { canSignOnChains, mayTakeDataFee, type SignedChains } from './chains.ts'
export {
  type ApprovalsVerdict,
  type CheckApprovalsParameters,
  checkApprovals,
  MAX_APPROVAL_MS,
  type VerifyEs256,
  verifyEs256,
} from './checkApprovals.ts'
export type { PolicyVerdict } from './checkPolicy.ts'
export { checkPolicy, type PolicyRequest, type TimedSample } from './checkPolicy.ts'
export { VaultPolicyError, type VaultPolicyErrorCode } from './errors.ts'
export type {
  Approver,
  ArgumentRule,
  ArgumentType,
  DomainRule,
  MessageRule,
  Policy,
  PolicyLog,
  Rule,
  Schedule,
  TimeSource,
  TransactionRule,
  TypedDataRule,
} from './policy.ts'
export { canTellTime, isDue, toDueMs } from './schedule.ts'
