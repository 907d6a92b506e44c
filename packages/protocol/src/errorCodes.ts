/**
 * Every error code of the coordinator’s HTTP API: its status, whether a retry may succeed, its title, and advice for the caller.
 * `docs/errors.md` repeats this table. A separate package entry, so that apps load it only where they show errors.
 */
export const errorCodes = {
  invalid_json: {
    status: 400,
    retryable: false,
    title: 'The body is not valid JSON',
    advice: 'Send one JSON object in UTF-8.',
  },
  invalid_request: {
    status: 400,
    retryable: false,
    title: 'The request is invalid',
    advice: 'A member or parameter is missing, unknown or malformed. The detail says which one.',
  },
  invalid_digest: {
    status: 400,
    retryable: false,
    title: 'The digest is invalid',
    advice: 'Send `digest` as `0x` and 64 hex digits.',
  },
  invalid_tx_metadata: {
    status: 400,
    retryable: false,
    title: 'The transaction metadata is invalid',
    advice: '`txMetadata` must have exactly the documented members. The detail names the wrong one.',
  },
  invalid_message: {
    status: 400,
    retryable: false,
    title: 'The message is invalid',
    advice:
      'Send `message` as `0x` and an even number of hex digits. The SDK also accepts text without unpaired surrogates, bytes, and hex in `{ raw }`.',
  },
  invalid_typed_data: {
    status: 400,
    retryable: false,
    title: 'The typed data is invalid',
    advice: 'The service signs only typed data with exactly one reading in EIP-712. The detail says what is wrong.',
  },
  invalid_policy: {
    status: 400,
    retryable: false,
    title: 'The policy is invalid',
    advice:
      'The detail says what is wrong. Use `createPolicy`: it sorts lists and writes addresses in lower case. A vault that already exists can be restored with its policy and `address`.',
  },
  oauth_state_invalid: {
    status: 400,
    retryable: false,
    title: 'This sign-in has expired or is unknown',
    advice: 'Sign in again in the same browser. Each sign-in works once, within 10 minutes.',
  },
  oauth_exchange_failed: {
    status: 400,
    retryable: false,
    title: 'The identity provider did not complete the sign-in',
    advice:
      'Sign in again. If it keeps failing, the operator should check the provider’s settings: it must return an ID token and an e-mail address.',
  },
  oauth_refused: {
    status: 400,
    retryable: false,
    title: 'The identity provider rejected the sign-in',
    advice:
      'Sign in again. If it keeps failing, the operator should check the redirect URI, the scopes and the prompt.',
  },
  not_authenticated: {
    status: 401,
    retryable: false,
    title: 'Not signed in',
    advice: 'Sign in. The session cookie is missing or unknown.',
  },
  session_expired: {
    status: 401,
    retryable: false,
    title: 'The session has expired',
    advice: 'Sign in again.',
  },
  origin_not_allowed: {
    status: 403,
    retryable: false,
    title: 'The origin is not allowed',
    advice: 'Send `Origin`, and call from a page that the operator lists in `ALLOWED_ORIGINS`.',
  },
  grant_invalid: {
    status: 403,
    retryable: false,
    title: 'The enclave rejected the session',
    advice: 'Sign in again.',
  },
  session_not_bound: {
    status: 403,
    retryable: false,
    title: 'The session has no browser key',
    advice: 'Sign in with a browser key: this service allows no other sessions. See `boundSession` of the SDK.',
  },
  stamp_missing: {
    status: 403,
    retryable: false,
    title: 'The request has no stamp',
    advice: 'Sign the request with the browser’s key: this session needs it for every signature. Nothing was signed.',
  },
  stamp_invalid: {
    status: 403,
    retryable: false,
    title: 'The stamp is invalid',
    advice:
      'Sign in again if the browser lost its key. A stamp is for one address, rule, kind and digest. Nothing was signed.',
  },
  stamp_time: {
    status: 403,
    retryable: true,
    title: 'The stamp is too old, or from the future',
    advice:
      'Check the clock of this device, and send a new stamp: one is valid for five minutes. `GET /auth/session` returns the service’s time.',
  },
  key_binding_mismatch: {
    status: 403,
    retryable: false,
    title: 'The key does not belong to this user',
    advice:
      'Sign in again. If it keeps failing, tell the operator: the database and the enclave disagree about who owns the key.',
  },
  policy_refused: {
    status: 403,
    retryable: false,
    title: 'The vault’s rules do not allow this',
    advice:
      'Change the request to match a rule. `detail` explains the nearest rule, `refusal` every rule. Nothing was signed.',
  },
  approvals_missing: {
    status: 403,
    retryable: false,
    title: 'The vault needs more approvals',
    advice: 'Collect the missing passkey approvals, then sign with all of them in one call. Nothing was signed.',
  },
  approval_invalid: {
    status: 403,
    retryable: false,
    title: 'An approval is invalid',
    advice:
      'Approve again: an approval covers one vault, rule, digest and kind. It lasts at most 24 hours, or 10 minutes if an agent gave it. The owner may have revoked the agent’s key. A call without a session gets this answer for an unknown vault, too. If the page showed something else for approval, don’t trust it. Nothing was signed.',
  },
  budget_exceeded: {
    status: 403,
    retryable: false,
    title: 'The vault’s budget does not allow this',
    advice:
      '`budget` is the index of the budget in the policy, and `left` the amount that it still allows. Pay less, or wait for the next period. Nothing was signed.',
  },
  wallet_not_found: {
    status: 404,
    retryable: false,
    title: 'The user has no wallet',
    advice: 'Create one with `POST /wallet/provision`.',
  },
  vault_not_found: {
    status: 404,
    retryable: false,
    title: 'The vault does not exist',
    advice:
      'Use an address from `GET /vaults`. To restore a vault, sign in as its owner and send its exact policy and address.',
  },
  proof_not_found: {
    status: 404,
    retryable: false,
    title: 'The proof does not exist',
    advice: 'Check the slug, and whether this is the right service.',
  },
  not_found: {
    status: 404,
    retryable: false,
    title: 'Not found',
    advice: 'Check the path, the name of the identity provider, or the CID.',
  },
  method_not_allowed: {
    status: 405,
    retryable: false,
    title: 'The method is not allowed',
    advice: 'Use a method from the `Allow` header.',
  },
  not_acceptable: {
    status: 406,
    retryable: false,
    title: 'The format is not available',
    advice: 'Request JSON, `application/vnd.ipld.raw` or `application/vnd.ipld.car`, with `Accept` or `?format=`.',
  },
  body_too_large: {
    status: 413,
    retryable: false,
    title: 'The body is too large',
    advice: 'Send at most 128 KiB, or 4 KiB without a session.',
  },
  message_too_large: {
    status: 413,
    retryable: false,
    title: 'The message is too large to sign',
    advice: 'Sign at most 32 KiB of canonical JSON. Hex takes two characters per byte.',
  },
  unsupported_media_type: {
    status: 415,
    retryable: false,
    title: 'The body must be JSON',
    advice: 'Send `Content-Type: application/json`.',
  },
  wallet_not_provisioned: {
    status: 409,
    retryable: false,
    title: 'The user has no wallet to sign with',
    advice: 'Create one with `POST /wallet/provision`, then sign.',
  },
  too_many_vaults: {
    status: 409,
    retryable: false,
    title: 'The user has too many vaults',
    advice:
      'Use an existing vault: a user can have 100, and vaults cannot be deleted. Restoring an unlisted vault does not count.',
  },
  digest_mismatch: {
    status: 422,
    retryable: false,
    title: 'The digest does not match the transaction',
    advice: 'Send the keccak256 of the unsigned EIP-1559 transaction that `txMetadata` describes.',
  },
  unsupported_transaction: {
    status: 422,
    retryable: false,
    title: 'This kind of transaction is not supported',
    advice: 'Use an EIP-1559 transaction with a recipient and no access list.',
  },
  chain_not_allowed: {
    status: 422,
    retryable: false,
    title: 'The service does not sign for this chain',
    advice:
      'Use a chain that the operator allows. Test services also reject 32-byte messages, and typed data without a chain.',
  },
  authorization_not_allowed: {
    status: 422,
    retryable: false,
    title: 'The wallet may not delegate to this code',
    advice: 'Delegate on one chain, to a contract on the operator’s `IMPLEMENTATIONS` list. Nothing was signed.',
  },
  rate_limited: {
    status: 429,
    retryable: true,
    title: 'Too many requests',
    advice:
      'Wait the number of seconds in `Retry-After`, then retry. `ServiceError` doesn’t have this header: with the SDK, wait a minute.',
  },
  quota_spent: {
    status: 429,
    retryable: true,
    title: 'The user has reached the signing limit',
    advice:
      'The daily limit, `SIGN_QUOTA_PER_DAY`, counts new signatures and address proofs in any 24 hours. Nothing was signed. Wait the number of seconds in `Retry-After`, at most a day, or ask the operator for a higher limit. `ServiceError` doesn’t have this header, so don’t retry in a loop. Pages of allowed origins can read it with their own `fetch`. No endpoint returns the rest of the limit.',
  },
  attestation_invalid: {
    status: 502,
    retryable: true,
    title: 'The enclave’s attestation failed verification',
    advice:
      'Retry. The service did not release the signature. If this keeps happening, don’t trust this service, and tell the operator.',
  },
  signature_invalid: {
    status: 502,
    retryable: true,
    title: 'The enclave’s signature is not the wallet’s',
    advice:
      'Retry. The service did not release the signature. If this keeps happening, don’t trust this service, and tell the operator.',
  },
  provider_unavailable: {
    status: 503,
    retryable: true,
    title: 'The identity provider is unavailable',
    advice: 'Try again in a moment, or sign in with another provider.',
  },
  entropy_unavailable: {
    status: 503,
    retryable: true,
    title: 'No entropy sample is available',
    advice:
      'Retry. Nothing was signed. For a vault payment that just became due, wait for a sample later than the due time.',
  },
  policy_not_pinned: {
    status: 503,
    retryable: true,
    title: 'The vault’s rules are not stored yet',
    advice:
      'Retry. The service returns a vault’s address after reading its rules back from IPFS. If this keeps happening, tell the operator.',
  },
  receipt_unavailable: {
    status: 503,
    retryable: true,
    title: 'The receipt cannot be rebuilt now',
    advice:
      'Wait the number of seconds in `Retry-After`, then retry. The receipt is still on IPFS: its CID is in the proof’s on-chain event.',
  },
  enclave_unavailable: {
    status: 503,
    retryable: true,
    title: 'The key enclave is unavailable',
    advice: 'Retry in a moment, with the same digest.',
  },
  collateral_stale: {
    status: 503,
    retryable: true,
    title: 'Intel’s collateral is out of date',
    advice: 'Retry later. Nothing was signed. Operator: check `COLLATERAL_URL`.',
  },
  log_unavailable: {
    status: 503,
    retryable: true,
    title: 'The transparency log is unavailable',
    advice:
      'Retry with the same digest. This attempt’s signature will not be released. Operator: `/health/ready` names the witnesses that don’t respond.',
  },
  budget_time: {
    status: 503,
    retryable: true,
    title: 'The witnesses’ time is unknown',
    advice:
      'Retry in a moment. The time of a budget comes from the witnesses of the vault’s policy, and too few of them have responded in the last minute. Nothing was signed.',
  },
  budget_unavailable: {
    status: 503,
    retryable: true,
    title: 'The vault’s budgets cannot be used now',
    advice:
      'Retry later. The log of the budgets is not open, or its table is full. Rules with passkeys still work. If this keeps happening, the log has ended: create a new vault.',
  },
  database_unavailable: {
    status: 503,
    retryable: true,
    title: 'The database is unavailable',
    advice:
      'Retry with the same digest, in case the first signature was stored. A message or typed data is signed a second time.',
  },
  shutting_down: {
    status: 503,
    retryable: true,
    title: 'The service is shutting down',
    advice: 'Retry in a moment.',
  },
  internal: {
    status: 500,
    retryable: false,
    title: 'Internal error',
    advice: 'Give the operator the request ID.',
  },
} as const satisfies Record<string, { status: number; retryable: boolean; title: string; advice: string }>

export type ErrorCode = keyof typeof errorCodes
