import {
  type ApprovalsVerdict,
  checkApprovals,
  checkPolicy,
  type Policy,
  type PolicyRequest,
  type Spend,
  type TimedSample,
  type VerifySignatures,
} from '@countersign/policy/core'
import {
  type Hex,
  isOffChain,
  MAX_RULES,
  pickContent,
  type SignItem,
  type SignItemError,
  type VaultUse,
} from '@countersign/protocol/core'
import type { Policies } from './policies.ts'

/** The rules of a vault, and the proof of time for them. */
export type VaultRules = {
  /** The policy's text. */
  policy: string
  /** Verified by the enclave. */
  sample: TimedSample | undefined
}

export type CheckVaultDeps = VerifySignatures & { policies: Policies }

type CheckVaultParameters = {
  item: SignItem
  vault: VaultUse
  /** The vault's policy. */
  policy: Policy
  sample: TimedSample | undefined
  address: Hex
  /** 32 bytes: the digest that is signed if the rules allow it, computed by the enclave. */
  digest: Uint8Array
  now: number
  /** Whether the request has a session of the owner. */
  hasSession: boolean
}

/** No rule may allow an authorization: delegated code would need no rule, nonce or approval. */
export const refusedKind: SignItemError = {
  error: 'policy_refused',
  details: { reasons: ['request_malformed'], rules: [], nearest: null },
}

/** Why a vault's rules don't allow its key to sign, or that they do, with every required approval. `spends` is then to be counted. */
export function checkVault(
  deps: VerifySignatures,
  { item, vault, policy, sample, address, digest, now, hasSession }: CheckVaultParameters,
): SignItemError | { spends: readonly Spend[] | undefined } {
  const request = toPolicyRequest(item, sample)
  if (request === undefined) return refusedKind
  // Without an index, `checkPolicy` would accept any rule. Parsing rejects such items, too.
  if (vault.rule === undefined) return { error: 'invalid_request' }
  const verdict = checkPolicy(policy, request, vault.rule, { vaultAddress: address, nowMs: now })
  if (!verdict.allowed) {
    const { reasons, rules, nearest } = verdict
    return { error: 'policy_refused', details: { reasons, rules, nearest } }
  }
  const rule = policy.rules[vault.rule]
  if (!hasSession && !(rule?.kind === 'spend' && !rule.session)) return { error: 'grant_invalid' }
  const approvals = checkApprovals(deps, {
    // `policies` has compared it with the text.
    policy,
    policyHash: Buffer.from(vault.policy, 'hex'),
    digest,
    vaultAddress: address,
    rule: vault.rule,
    kind: request.kind,
    nowMs: now,
    approvals: vault.approvals ?? [],
    required: verdict.approvals,
  })
  return approvals.valid ? { spends: verdict.spends } : toApprovalError(approvals)
}

function toApprovalError(verdict: ApprovalsVerdict & { valid: false }): SignItemError {
  const { reason } = verdict
  if (reason === 'approvals_malformed') return { error: 'invalid_request' }
  if (reason === 'approvals_missing') return { error: reason, missing: verdict.missing }
  return { error: 'approval_invalid', index: verdict.index, reason }
}

type RevocationParameters = {
  vault: VaultUse
  policy: Policy
  digest: Uint8Array
  address: Hex
  now: number
  required: number
}

/** Why the approvals of a revocation don't suffice. Undefined if they do: only passkeys count, of any rule. */
export function checkRevocationApprovals(
  deps: VerifySignatures,
  { vault, policy, digest, address, now, required }: RevocationParameters,
): SignItemError | undefined {
  const approvals = checkApprovals(deps, {
    policy,
    policyHash: Buffer.from(vault.policy, 'hex'),
    digest,
    vaultAddress: address,
    rule: MAX_RULES,
    kind: 'revocation',
    nowMs: now,
    approvals: vault.approvals ?? [],
    required,
  })
  return approvals.valid ? undefined : toApprovalError(approvals)
}

/** The policy from which a vault's key is derived. */
export function findPolicy(
  { policies }: Pick<CheckVaultDeps, 'policies'>,
  { policy }: VaultUse,
  rules: VaultRules | undefined,
): Policy | { error: 'policy_unknown' | 'policy_not_supported' } {
  return rules === undefined ? { error: 'policy_unknown' } : policies.get(policy, rules.policy)
}

function toPolicyRequest(item: SignItem, sample: TimedSample | undefined): PolicyRequest | undefined {
  if (item.kind === 'transaction') return { kind: item.kind, txMetadata: item.txMetadata, sample }
  return isOffChain(item) ? pickContent(item) : undefined
}
