import { hash } from 'node:crypto'
import { canSignOnChains, canTellTime, type Policy, parsePolicy, VaultPolicyError } from '@countersign/policy/core'
import type { EnclaveSettings, VaultRequest, VaultResponse } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Time } from '../time/time.ts'
import { canCount, isSupported } from './policies.ts'
import type { PolicyTexts } from './policyMemory.ts'

export type DeriveVaultDeps = {
  keyWorker: KeyWorker
  policyTexts: PolicyTexts
  settings: EnclaveSettings
  /** The chains to sign for. Undefined: any. */
  chainIds?: readonly number[] | undefined
  time: Time
}

/**
 * The vault of a session's user under a policy. Rejects a new vault that could never sign here, because funds sent to it would be locked. An
 * existing one keeps its key, even if settings or limits for new policies have changed.
 */
export async function deriveVault(deps: DeriveVaultDeps, request: VaultRequest): Promise<VaultResponse> {
  deps.time.assertKnown()
  const { sid, grant } = request
  const name = hash('sha256', request.policy, 'hex')
  // Before parsing the policy, which takes longer: callers without a session must not keep this thread busy.
  const vault = await deps.keyWorker.describeVault({ sid, grant, policy: name, now: deps.time.now() })
  if ('fault' in vault) throw new EnclaveError(vault.fault, 'no valid session')
  const response = { ...vault, policy: name }
  if (request.isKnown) return response
  const policy = readNewPolicy(request.policy)
  const { settings, chainIds } = deps
  const chains = { chainIds, isChainRequired: chainIds !== undefined }
  const isSignable = policy.rules.every((rule) => canSignOnChains(rule, chains))
  const isCounted = canCount(policy, settings.log)
  if (!isSignable || !isCounted || !isSupported(policy, settings.log) || !canTellTime(policy, settings.entropy)) {
    throw new EnclaveError('policy_not_supported', 'this enclave cannot do what the policy asks for')
  }
  deps.policyTexts.add(request.policy)
  return response
}

function readNewPolicy(text: string): Policy {
  try {
    return parsePolicy(Buffer.from(text), { isNew: true })
  } catch (error) {
    if (!(error instanceof VaultPolicyError)) throw error
    throw new EnclaveError('invalid_policy', error.message, { details: error.details, cause: error })
  }
}
