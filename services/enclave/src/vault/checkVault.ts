import {
  checkApprovals,
  checkPolicy,
  type Policy,
  type PolicyRequest,
  type TimedSample,
  type VerifyEs256,
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

/** What the rules of a vault are, and what tells them the time. */
export type VaultRules = {
  /** The policy's text. */
  policy: string
  /** As the enclave has verified it. */
  sample: TimedSample | undefined
}

export type CheckVaultDeps = { policies: Policies; verifyEs256: VerifyEs256 }

type CheckVaultParameters = {
  item: SignItem
  vault: VaultUse
  /** That of the vault. */
  policy: Policy
  sample: TimedSample | undefined
  address: Hex
  /** 32 bytes: what is signed if this allows it, as the enclave has hashed it. */
  digest: Uint8Array
  now: number
}

/** No rule can be for an authorization: delegated code would need no rule, no nonce and no approval. */
export const refusedKind: SignItemError = {
  error: 'policy_refused',
  details: { reasons: ['request_malformed'], rules: [], nearest: null },
}

/** Why a vault's rules do not allow its key to sign; undefined where they do, with every approval that they ask for. */
export function checkVault(
  deps: Pick<CheckVaultDeps, 'verifyEs256'>,
  { item, vault, policy, sample, address, digest, now }: CheckVaultParameters,
): SignItemError | undefined {
  const request = toPolicyRequest(item, sample)
  if (request === undefined) return refusedKind
  const verdict = checkPolicy(policy, request)
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

/** The policy that a vault's key is derived from. */
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
