import {
  canTellTime,
  checkPolicy,
  type Policy,
  type PolicyRequest,
  parsePolicy,
  type TimedSample,
} from '@countersign/policy'
import { type EntropySetting, isOffChain, pickContent, SAMPLE_TOLERANCE_MS } from '@countersign/protocol'
import type { StoredPolicy } from '../store/vaults.ts'
import type { Clock } from '../system.ts'
import { approvalsMissing, policyRefused } from './itemErrors.ts'
import type { SignJob } from './job.ts'

export type VaultRules = {
  /** A policy that was stored, parsed once for as long as it is remembered. */
  read(policy: StoredPolicy): Policy
  /** Whether a vault's rules can allow a signing. Throws `policy_refused` and `approvals_missing`. */
  assertAllowed(request: Pick<SignJob, 'vault' | 'asked'>): void
}

/** To read a policy takes longer than to ask it: each drand key in it takes milliseconds. */
const MAX_KNOWN = 256

type VaultRulesDeps = {
  clock: Clock
  /** Whose samples this service signs with. */
  entropySources: readonly EntropySetting[]
}

/**
 * The rules of vaults, asked before a sample is spent. What they allow here is asked again inside the enclave, with the sample that tells
 * the time, and there the approvals are verified: this decides about nothing but costs.
 */
export function createVaultRules({ clock, entropySources }: VaultRulesDeps): VaultRules {
  const known = new Map<string, Policy>()

  return {
    read({ hash, text }) {
      const policy = known.get(hash) ?? parsePolicy(Buffer.from(text))
      known.delete(hash)
      known.set(hash, policy)
      for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest)
      return policy
    },
    assertAllowed({ vault, asked }) {
      if (vault === undefined || asked.kind === 'address') return
      const { rules: policy } = vault
      const verdict = checkPolicy(policy, toPolicyRequest(asked, toLatestSample(policy, entropySources, clock.now())))
      if (!verdict.allowed) throw policyRefused(policy, verdict)
      const missing = verdict.approvals - (vault.approvals?.length ?? 0)
      if (missing > 0) throw approvalsMissing(missing)
    },
  }
}

/** As late as a sample can be now, and of a source that counts if there is one: what is not due by it is not due. */
function toLatestSample(policy: Policy, sources: readonly EntropySetting[], now: number): TimedSample | undefined {
  if (policy.schedule === undefined) return undefined
  const source = sources.find((one) => canTellTime(policy, [one])) ?? sources[0]
  return source && { source, timeMs: now + SAMPLE_TOLERANCE_MS }
}

function toPolicyRequest(asked: SignJob['asked'], sample: TimedSample | undefined): PolicyRequest {
  if (asked.kind === 'transaction') return { kind: asked.kind, txMetadata: asked.txMetadata, ...(sample && { sample }) }
  if (isOffChain(asked)) return pickContent(asked)
  throw new Error('a vault signs nothing of this kind')
}
