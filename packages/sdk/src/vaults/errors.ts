import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

/**
 * Why something about a vault did not happen, each with what the caller should do. Nothing was signed. The first seven are the
 * service's own codes: those with a `status` came from it, the others were found before it was asked.
 */
const codes = {
  /** Change the request, or use another vault: no rule allows this. `details` says why in words. */
  policy_refused: true,
  /** Have more passkeys approve: `prepare`, `approve` on each device, then `signPrepared` with all approvals. */
  approvals_missing: true,
  /** Approve again: one of the approvals is not for exactly this, not by an approver, or over. */
  approval_invalid: true,
  /** Use a vault of `listVaults`: the user who is signed in has no such vault. */
  vault_not_found: true,
  /** Use one of the vaults that are there. */
  too_many_vaults: true,
  /** Call `createVault` again with the same policy: it is not read back from IPFS yet. */
  policy_not_pinned: true,
  /** Fix the policy. */
  invalid_policy: true,
  /** Distrust the service: it answered another vault than that of the policy. Send nothing to its address. */
  vault_mismatch: true,
  /** Prepare again: what was received is not what `prepare` gives, or was cut. */
  prepared_malformed: true,
  /** Do not approve, distrust the sender: digest, policy hash or number of approvals do not follow from what is shown. */
  prepared_mismatch: true,
  /** Prepare again, and have it approved again: its time is over. */
  prepared_expired: true,
  /** Set the clock of this device, or of the one that prepared it: by this one it would hold for more than 24 hours from now. */
  prepared_early: true,
  /** Prepare again: another transaction took its nonce. If this one was sent before, look in the history first. */
  nonce_taken: true,
  /** Use a browser with WebAuthn, over https. */
  passkey_unsupported: true,
  /** Ask again when the user wants to: the dialog was closed, or nobody answered it. */
  passkey_cancelled: true,
  /** Use the passkey that is there: this authenticator holds one of those that were excluded. */
  passkey_exists: true,
  /** Use another authenticator: this one makes no discoverable key of ES256. */
  passkey_unsuitable: true,
  /** Open the page of an approver: none of the vault's passkeys works on this one. `details` names the pages. */
  passkey_elsewhere: true,
  /** Choose another passkey: the one that answered is no approver of this vault. */
  passkey_not_approver: true,
  /** See `cause`: the browser refused for another reason, such as an `rpId` that is not of this page. */
  passkey_failed: true,
} as const

export type VaultErrorCode = keyof typeof codes

/**
 * Narrows to an error about a vault, by the service or by the SDK, so that its code can be switched over.
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
