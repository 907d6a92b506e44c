import {
  canTellTime,
  checkApprovals,
  checkPolicy,
  describeRefusal,
  type Policy,
  type PolicyRequest,
  parsePolicy,
  type TimedSample,
  verifyEs256,
} from '@countersign/policy'
import {
  type ApprovalKind,
  type EntropySetting,
  fromHex,
  isOffChain,
  type PolicyRefusal,
  pickContent,
  SAMPLE_TOLERANCE_MS,
  type SignItemError,
  verifyEd25519,
} from '@countersign/protocol'
import { CoordinatorError, type CoordinatorErrorCode } from '../errors.ts'
import type { StoredPolicy } from '../store/vaults.ts'
import type { Clock } from '../system.ts'
import type { SignJob } from './job.ts'

/** Parsing a policy takes longer than evaluating it: each drand key takes milliseconds. */
const MAX_KNOWN = 256

type VaultRulesDeps = {
  clock: Clock
  /** The sources whose samples this service signs with. */
  entropySources: readonly EntropySetting[]
}

/**
 * Evaluates the rules of vaults before a sample is spent. This only saves costs: the enclave evaluates them again with the sample that gives
 * the time, and verifies the approvals. Without a session, approvals are verified here too, because anyone can send them.
 */
export function createVaultRules({ clock, entropySources }: VaultRulesDeps) {
  const known = new Map<string, Policy>()

  return {
    /** Parses a stored policy, and caches the result. */
    read({ hash, text }: StoredPolicy): Policy {
      const policy = known.get(hash) ?? parsePolicy(Buffer.from(text))
      known.delete(hash)
      known.set(hash, policy)
      for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
      return policy
    },
    /** Throws `policy_refused` or `approvals_missing` if a vault's rules can't allow the signing. */
    assertAllowed({ vault, content, address }: Pick<SignJob, 'vault' | 'content' | 'address'>) {
      if (vault === undefined || content.kind === 'address' || content.kind === 'revocation') return
      const { rules: policy } = vault
      const nowMs = clock.now()
      const request = toPolicyRequest(content, toLatestSample(policy, entropySources, nowMs))
      const verdict = checkPolicy(policy, request, vault.rule, { vaultAddress: address, nowMs })
      if (!verdict.allowed) throw policyRefused(policy, verdict)
      const missing = verdict.approvals - (vault.approvals?.length ?? 0)
      if (missing > 0) throw approvalsMissing(missing)
    },
    /** Whether these approvals are valid and enough. */
    isApproved(
      { vault, address: vaultAddress }: Pick<SignJob, 'address'> & { vault: NonNullable<SignJob['vault']> },
      approved: { rule: number; kind: ApprovalKind; digest: Uint8Array; required: number },
    ): boolean {
      const parameters = { ...approved, policy: vault.rules, policyHash: fromHex(vault.policy.hash), vaultAddress }
      const given = { approvals: vault.approvals ?? [], nowMs: clock.now() }
      return checkApprovals({ verifyEs256, verifyEd25519 }, { ...parameters, ...given }).valid
    },
  }
}

/**
 * The latest time that a sample could have now, from a source that the policy accepts, if the service has such a source. A payment that isn't due at that time
 * isn't due at all.
 */
function toLatestSample(policy: Policy, sources: readonly EntropySetting[], now: number): TimedSample | undefined {
  if (policy.schedule === undefined) return undefined
  const source = sources.find((one) => canTellTime(policy, [one])) ?? sources[0]
  return source && { source, timeMs: now + SAMPLE_TOLERANCE_MS }
}

function toPolicyRequest(content: SignJob['content'], sample: TimedSample | undefined): PolicyRequest {
  if (content.kind === 'transaction')
    return { kind: content.kind, txMetadata: content.txMetadata, ...(sample && { sample }) }
  if (isOffChain(content)) return pickContent(content)
  throw new Error('a vault signs nothing of this kind')
}

/** Maps the enclave's reasons for refusing to sign. */
const codes: Record<SignItemError['error'], CoordinatorErrorCode> = {
  invalid_request: 'internal',
  invalid_tx_metadata: 'invalid_tx_metadata',
  message_too_large: 'message_too_large',
  invalid_message: 'invalid_message',
  invalid_typed_data: 'invalid_typed_data',
  authorization_not_allowed: 'authorization_not_allowed',
  digest_mismatch: 'digest_mismatch',
  grant_invalid: 'grant_invalid',
  session_expired: 'session_expired',
  key_binding_mismatch: 'key_binding_mismatch',
  stamp_missing: 'stamp_missing',
  stamp_invalid: 'stamp_invalid',
  stamp_time: 'stamp_time',
  quote_unavailable: 'enclave_unavailable',
  entropy_refused: 'entropy_unavailable',
  entropy_used: 'entropy_unavailable',
  entropy_memory_full: 'enclave_unavailable',
  policy_unknown: 'enclave_unavailable',
  policy_not_supported: 'policy_refused',
  policy_refused: 'policy_refused',
  approvals_missing: 'approvals_missing',
  approval_invalid: 'approval_invalid',
  budget_exceeded: 'budget_exceeded',
  budget_time: 'budget_time',
  budget_unavailable: 'budget_unavailable',
}

export function toItemError(result: SignItemError, { vault }: Pick<SignJob, 'vault'>): CoordinatorError {
  if (result.error === 'policy_refused' && vault !== undefined) {
    return isOnlyEarly(result.details) ? sampleTooEarly() : policyRefused(vault.rules, result.details)
  }
  if (result.error === 'approvals_missing') return approvalsMissing(result.missing)
  if (result.error === 'budget_exceeded') return budgetExceeded(result)
  const details = result.error === 'approval_invalid' ? `approvals[${result.index}]: ${result.reason}` : result.error
  return new CoordinatorError(codes[result.error], 'the enclave refused to sign', { details })
}

/**
 * `assertAllowed` found the payment due by our clock. Samples are bought ahead, so the one sent may be older than the due time. A later
 * sample fixes it.
 */
function isOnlyEarly({ reasons, rules }: PolicyRefusal): boolean {
  return reasons.join() === 'nonce_not_due' && rules.some((rule) => rule.reasons.length === 0)
}

function sampleTooEarly() {
  const details = 'the schedule allows this transaction as soon as a sample proves the time'
  return new CoordinatorError('entropy_unavailable', 'no entropy sample is late enough', { details })
}

function policyRefused(policy: Policy, { reasons, rules, nearest }: PolicyRefusal): CoordinatorError {
  const refusal = { reasons, rules, nearest }
  const details = describeRefusal(policy, { allowed: false, ...refusal }).join(' ')
  return new CoordinatorError('policy_refused', 'the rules of the vault do not allow this', { details, refusal })
}

function budgetExceeded({ budget, left }: { budget: number; left: string }): CoordinatorError {
  const details = `budgets[${budget}] allows ${left} more`
  return new CoordinatorError('budget_exceeded', 'the budget does not allow this', {
    details,
    exceeded: { budget, left },
  })
}

function approvalsMissing(missing: number): CoordinatorError {
  const details = missing === 1 ? '1 more approval is needed' : `${missing} more approvals are needed`
  return new CoordinatorError('approvals_missing', 'more approvals are needed', { details })
}
