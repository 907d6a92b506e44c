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
  MAX_AGENT_APPROVAL_MS,
  MAX_APPROVAL_MS,
  type VerifyEs256,
  type VerifySignatures,
  verifyEs256,
} from './checkApprovals.ts'
export type { PolicyVerdict } from './checkPolicy.ts'
export { checkPolicy, type PolicyRequest, type TimedSample } from './checkPolicy.ts'
export { type BudgetChange, type BudgetCounter, type BudgetVerdict, countSpends } from './countSpends.ts'
export { VaultPolicyError, type VaultPolicyErrorCode } from './errors.ts'
export type {
  AgentKey,
  Approver,
  ArgumentRule,
  ArgumentType,
  Budget,
  DomainRule,
  MessageRule,
  Passkey,
  Policy,
  PolicyLog,
  Rule,
  RuleApprovers,
  Schedule,
  SpendForm,
  SpendRule,
  TimeSource,
  TransactionRule,
  TypedDataRule,
} from './policy.ts'
export { readSpend, type Spend, type SpendContext, type SpendRequest, X402_SPENDERS } from './readSpend.ts'
export { canTellTime, isDue, toDueMs } from './schedule.ts'
export { parseStateHex, toStateHex, type VaultState } from './vaultState.ts'
