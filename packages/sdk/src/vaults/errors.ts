import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/**
 * The codes of vaults, each with what the caller should do. Nothing was signed. The first seven are also codes of the service: with a
 * `status` the service returned them, without one the SDK found the error first.
 */
const codes = {
  /** Change the request, or use another vault: no rule allows this. `details` says why in words. */
  policy_refused: true,
  /** Get more approvals: `prepare`, `approve` on each device, then `signPrepared` with all of them. */
  approvals_missing: true,
  /** Approve again: an approval is for another request, not by an approver, or expired. */
  approval_invalid: true,
  /** Use a vault of `listVaults`: the signed-in user has no such vault. */
  vault_not_found: true,
  /** Use an existing vault. */
  too_many_vaults: true,
  /** Call `createVault` again with the same policy: the service couldn't read it back from IPFS yet. */
  policy_not_pinned: true,
  /** Fix the policy. */
  invalid_policy: true,
  /** Don't trust the service: it returned another vault. Send nothing to its address. */
  vault_mismatch: true,
  /** Prepare again: the text is incomplete or not the output of `prepare`. */
  prepared_malformed: true,
  /** Don't approve: digest, policy hash or number of approvals don't match the content. Don't trust the sender. */
  prepared_mismatch: true,
  /** Prepare and approve again: it has expired. */
  prepared_expired: true,
  /** Correct the clock of this device or of the one that prepared it: here, the approval would last longer than 24 hours. */
  prepared_early: true,
  /** Prepare again: another transaction used the nonce. If this one may have been sent, look in the history first. */
  nonce_taken: true,
  /** Use a browser with WebAuthn, over https. */
  passkey_unsupported: true,
  /** Ask again when the user wants to: the dialog was closed or timed out. */
  passkey_cancelled: true,
  /** Use the existing passkey: this authenticator holds an excluded one. */
  passkey_exists: true,
  /** Use another authenticator: this one can't create a discoverable ES256 key. */
  passkey_unsuitable: true,
  /** Open an approver's page, which `details` names: none of the vault's passkeys works on this one. */
  passkey_elsewhere: true,
  /** Choose another passkey: this one is not an approver of the vault. */
  passkey_not_approver: true,
  /** See `cause`: the browser failed for another reason, such as an `rpId` of another page. */
  passkey_failed: true,
} as const

export type VaultErrorCode = keyof typeof codes

/**
 * Narrows an error of the service or the SDK to the codes of vaults.
 *
 * @example
 * if (isVaultError(error) && error.code === 'approvals_missing') …
 */
export function isVaultError(error: unknown): error is ServiceError<VaultErrorCode> {
  return error instanceof ServiceError && Object.hasOwn(codes, error.code)
}

export function createVaultError(code: VaultErrorCode, message: string, options?: ServiceErrorOptions) {
  return new ServiceError<VaultErrorCode>(code, message, options)
}
