import { canTellTime } from '@countersign/policy'
import type { EnclaveSettings, VaultRequest, VaultResponse } from '@countersign/protocol'
import { EnclaveError } from '../errors.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Time } from '../time/time.ts'
import { isSupported, readPolicy } from './policies.ts'
import type { PolicyTexts } from './policyTexts.ts'

export type DeriveVaultDeps = { keyWorker: KeyWorker; policyTexts: PolicyTexts; settings: EnclaveSettings; time: Time }

/**
 * The vault of a session's user under a policy. One that could never sign here is refused: what is sent to its address would be
 * locked in.
 */
export async function deriveVault(deps: DeriveVaultDeps, request: VaultRequest): Promise<VaultResponse> {
  deps.time.assertKnown()
  const { sid, grant } = request
  const policy = readPolicy(Buffer.from(request.policy))
  if (policy === undefined) throw new EnclaveError('invalid_policy', 'not a policy in canonical JSON')
  if (!isSupported(policy, deps.settings.log) || !canTellTime(policy, deps.settings.entropy)) {
    throw new EnclaveError('policy_not_supported', 'this enclave cannot do what the policy asks for')
  }
  const hash = deps.policyTexts.add(request.policy)
  const vault = await deps.keyWorker.describeVault({ sid, grant, policy: hash, now: deps.time.now() })
  if ('fault' in vault) throw new EnclaveError(vault.fault, 'no valid session')
  const { keyId, address, publicKey } = vault
  return { keyId, address, publicKey, policy: hash }
}
