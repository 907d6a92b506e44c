import {
  checkApprovals,
  checkPolicy,
  type Policy,
  type PolicyRequest,
  type TimedSample,
  type VerifySignatures,
} from '@countersign/policy/core'
import {
  type Hex,
  isOffChain,
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
}

/** No rule may allow an authorization: delegated code would need no rule, nonce or approval. */
export const refusedKind: SignItemError = {
  error: 'policy_refused',
  details: { reasons: ['request_malformed'], rules: [], nearest: null },
}

/** Returns why a vault's rules don't allow its key to sign. Undefined if they do, with every required approval. */
export function checkVault(
  deps: VerifySignatures,
  { item, vault, policy, sample, address, digest, now }: CheckVaultParameters,
): SignItemError | undefined {
  const request = toPolicyRequest(item, sample)
  if (request === undefined) return refusedKind
  // Without an index, `checkPolicy` would accept any rule. Parsing rejects such items, too.
  if (vault.rule === undefined) return { error: 'invalid_request' }
  const verdict = checkPolicy(policy, request, vault.rule)
  if (!verdict.allowed) {
    const { reasons, rules, nearest } = verdict
    return { error: 'policy_refused', details: { reasons, rules, nearest } }
  }
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
  if (approvals.valid) return undefined
  const { reason } = approvals
  if (reason === 'approvals_malformed') return { error: 'invalid_request' }
  if (reason === 'approvals_missing') return { error: reason, missing: approvals.missing }
  return { error: 'approval_invalid', index: approvals.index, reason }
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
