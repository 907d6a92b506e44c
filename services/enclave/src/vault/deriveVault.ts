import { hash } from 'node:crypto'
import { canSignOnChains, canTellTime, type Policy, parsePolicy, VaultPolicyError } from '@countersign/policy/core'
import type { EnclaveSettings, VaultRequest, VaultResponse } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Time } from '../time/time.ts'
import { isSupported } from './policies.ts'
import type { PolicyTexts } from './policyMemory.ts'

export type DeriveVaultDeps = {
  keyWorker: KeyWorker
  policyTexts: PolicyTexts
  settings: EnclaveSettings
  /** What may be signed for. Undefined: any. */
  chainIds?: readonly number[] | undefined
  time: Time
}

/**
 * The vault of a session's user under a policy. A new one that could never sign here is refused: what is sent to its address would be
 * locked in. One that exists keeps its key, whatever has become of the settings and of what new policies may have.
 */
export async function deriveVault(deps: DeriveVaultDeps, request: VaultRequest): Promise<VaultResponse> {
  deps.time.assertKnown()
  const { sid, grant } = request
  const name = hash('sha256', request.policy, 'hex')
  // Before the policy is read, which takes longer: whoever has no session is not to keep this thread busy.
  const vault = await deps.keyWorker.describeVault({ sid, grant, policy: name, now: deps.time.now() })
  if ('fault' in vault) throw new EnclaveError(vault.fault, 'no valid session')
  const { keyId, address, publicKey } = vault
  const response = { keyId, address, publicKey, policy: name }
  if (request.isKnown) return response
  const policy = readNewPolicy(request.policy)
  const { settings, chainIds } = deps
  const chains = { chainIds, isChainRequired: chainIds !== undefined }
  const isSignable = policy.rules.every((rule) => canSignOnChains(rule, chains))
  if (!isSignable || !isSupported(policy, settings.log) || !canTellTime(policy, settings.entropy)) {
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
