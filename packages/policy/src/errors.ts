import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol/core'

/** Why something is not a policy or list of approvals. Verdicts explain why a request is not allowed. */
export type VaultPolicyErrorCode =
  /** Fix the policy: it has more than 16 KiB. */
  | 'vault_policy_too_large'
  /** Distrust the bytes: they are not the canonical JSON that was hashed. */
  | 'vault_policy_not_canonical'
  /** Fix the policy: a member is missing, unknown, malformed, out of order, or contradicts another. */
  | 'vault_policy_malformed'
  /** Fix the call: the list of approvals is not in canonical form. */
  | 'approvals_malformed'

export class VaultPolicyError extends ServiceError<VaultPolicyErrorCode> {
  override name = 'VaultPolicyError'
  constructor(code: VaultPolicyErrorCode, message: string, options?: ServiceErrorOptions) {
    super(code, message, options)
  }
}
