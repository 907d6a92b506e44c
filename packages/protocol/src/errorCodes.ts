/**
 * Every error code of the coordinator’s HTTP interface: its status, whether a retry may succeed, its title, and advice for the caller.
 * `docs/errors.md` explains each code. This is a separate package entry, so that apps load it only where they show errors.
 */
export const errorCodes = {
  invalid_json: {
    status: 400,
    retryable: false,
    title: 'The body is not JSON',
    advice: 'Fix the call: send one JSON object in UTF-8.',
  },
  invalid_request: {
    status: 400,
    retryable: false,
    title: 'The request is not valid',
    advice: 'Fix the call; `detail` names what is wrong.',
  },
  invalid_digest: {
    status: 400,
    retryable: false,
    title: 'The digest is not valid',
    advice: 'Fix the call: `digest` is 0x and 64 hex digits.',
  },
  invalid_tx_metadata: {
    status: 400,
    retryable: false,
    title: 'The transaction metadata is not valid',
    advice: 'Fix the call; `detail` names the field. `txMetadata` has exactly the members that this page shows.',
  },
  invalid_message: {
    status: 400,
    retryable: false,
    title: 'The message is not valid',
    advice: 'Fix the call: `message` is 0x and the hex of whole bytes.',
  },
  invalid_typed_data: {
    status: 400,
    retryable: false,
    title: 'The typed data is not valid',
    advice: 'Fix the call; `detail` names what is wrong. Only what EIP-712 reads in exactly one way is signed.',
  },
  invalid_policy: {
    status: 400,
    retryable: false,
    title: 'The policy is not valid',
    advice: 'Fix the call; `detail` names what is wrong. A policy has one spelling: every list is in its order.',
  },
  oauth_state_invalid: {
    status: 400,
    retryable: false,
    title: 'The sign-in is unknown or over',
    advice:
      'Start the sign-in again, in the browser that is to be signed in. Each sign-in can be finished once, within 10 minutes.',
  },
  oauth_exchange_failed: {
    status: 400,
    retryable: false,
    title: 'The identity provider did not sign the user in',
    advice:
      'Start the sign-in again. If this persists: the provider must answer with an ID token and an e-mail address.',
  },
  oauth_refused: {
    status: 400,
    retryable: false,
    title: 'The identity provider refused the sign-in',
    advice:
      'Start the sign-in again. If this persists, tell the operator the detail: the provider may not accept the configuration of this service.',
  },
  not_authenticated: { status: 401, retryable: false, title: 'Not signed in', advice: 'Sign in.' },
  session_expired: { status: 401, retryable: false, title: 'The session is over', advice: 'Sign in again.' },
  origin_not_allowed: {
    status: 403,
    retryable: false,
    title: 'The origin is not allowed',
    advice: 'Call from a page whose origin the operator has put on the allow-list.',
  },
  grant_invalid: { status: 403, retryable: false, title: 'The enclave refused the session', advice: 'Sign in again.' },
  key_binding_mismatch: {
    status: 403,
    retryable: false,
    title: 'The key does not belong to this user',
    advice: 'Sign in again. If this persists, tell the operator: database and enclave disagree.',
  },
  policy_refused: {
    status: 403,
    retryable: false,
    title: 'The rules of the vault do not allow this',
    advice:
      'Change the request so that a rule allows it. `detail` explains the refusal of the nearest rule, `refusal` that of each rule. Nothing was signed.',
  },
  approvals_missing: {
    status: 403,
    retryable: false,
    title: 'The vault needs more approvals',
    advice:
      'Have as many passkeys approve as the rule asks for, then sign with all approvals at once. Nothing was signed.',
  },
  approval_invalid: {
    status: 403,
    retryable: false,
    title: 'An approval does not hold',
    advice: 'Approve again: an approval is for one vault, digest and kind, and ends in 24 hours. Nothing was signed.',
  },
  wallet_not_found: {
    status: 404,
    retryable: false,
    title: 'The user has no wallet',
    advice: 'Provision one with `POST /wallet/provision`.',
  },
  vault_not_found: {
    status: 404,
    retryable: false,
    title: 'There is no such vault',
    advice:
      'Use an address that `GET /vaults` lists. To bring a vault back, sign in as its owner, and send its own policy and address.',
  },
  proof_not_found: { status: 404, retryable: false, title: 'There is no such proof', advice: 'Check the slug.' },
  not_found: { status: 404, retryable: false, title: 'There is nothing here', advice: 'Check the path.' },
  method_not_allowed: {
    status: 405,
    retryable: false,
    title: 'The method is not allowed here',
    advice: 'Use a method that `Allow` names.',
  },
  not_acceptable: {
    status: 406,
    retryable: false,
    title: 'The format is not available',
    advice: 'Ask for JSON, `application/vnd.ipld.raw` or `application/vnd.ipld.car`, by `Accept` or `?format=`.',
  },
  body_too_large: { status: 413, retryable: false, title: 'The body is too large', advice: 'Send at most 128 KiB.' },
  message_too_large: {
    status: 413,
    retryable: false,
    title: 'The message is too large to be signed',
    advice:
      'Sign less: `details` names the limit, of canonical JSON in UTF-8. A message in hex has half as many bytes.',
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
    advice: 'Provision one with `POST /wallet/provision`, then sign.',
  },
  too_many_vaults: {
    status: 409,
    retryable: false,
    title: 'The user has too many vaults',
    advice: 'Use one of those that are there: a user can have 100, and none is ever removed.',
  },
  digest_mismatch: {
    status: 422,
    retryable: false,
    title: 'The digest is not that of the transaction',
    advice: 'Fix the call: `digest` is the keccak256 of the unsigned EIP-1559 transaction that `txMetadata` describes.',
  },
  unsupported_transaction: {
    status: 422,
    retryable: false,
    title: 'This kind of transaction is not supported',
    advice: 'Use an EIP-1559 transaction with a recipient and without an access list.',
  },
  chain_not_allowed: {
    status: 422,
    retryable: false,
    title: 'The service does not sign for this chain',
    advice: 'Use a chain that the operator allows.',
  },
  authorization_not_allowed: {
    status: 422,
    retryable: false,
    title: 'The wallet may not delegate to this code',
    advice: 'Delegate on one chain, to an implementation that the operator allows. Nothing was signed.',
  },
  rate_limited: {
    status: 429,
    retryable: true,
    title: 'Too many requests',
    advice: 'Retry after the seconds that `Retry-After` names.',
  },
  quota_spent: {
    status: 429,
    retryable: true,
    title: 'The quota of signatures is spent',
    advice: 'Retry after the seconds that `Retry-After` names, or ask the operator for more. Nothing was signed.',
  },
  attestation_invalid: {
    status: 502,
    retryable: true,
    title: 'The evidence of the hardware did not hold',
    advice: 'Retry. Nothing was released; if this persists, distrust the service and tell the operator.',
  },
  signature_invalid: {
    status: 502,
    retryable: true,
    title: 'The enclave’s signature did not hold',
    advice: 'Retry. Nothing was released; if this persists, distrust the service and tell the operator.',
  },
  provider_unavailable: {
    status: 503,
    retryable: true,
    title: 'The identity provider cannot be reached',
    advice: 'Retry in a moment, or sign in another way.',
  },
  entropy_unavailable: {
    status: 503,
    retryable: true,
    title: 'No entropy sample is available',
    advice: 'Retry. Nothing was signed.',
  },
  policy_not_pinned: {
    status: 503,
    retryable: true,
    title: 'The rules are not stored safely yet',
    advice: 'Retry: the address is answered once its rules were read back from IPFS.',
  },
  receipt_unavailable: {
    status: 503,
    retryable: true,
    title: 'The receipt cannot be rebuilt now',
    advice:
      'Retry after the seconds that `Retry-After` names. The proof is not lost: its CID is in its on-chain event.',
  },
  enclave_unavailable: { status: 503, retryable: true, title: 'The key enclave cannot be reached', advice: 'Retry.' },
  collateral_stale: {
    status: 503,
    retryable: true,
    title: 'The vendor’s collateral is out of date',
    advice: 'Retry later. Nothing was signed.',
  },
  log_unavailable: {
    status: 503,
    retryable: true,
    title: 'The public log or its witnesses cannot be reached',
    advice:
      'Retry. No signature of this attempt comes out later, and none leaves the enclave before witnesses have seen it in the log.',
  },
  database_unavailable: { status: 503, retryable: true, title: 'The database cannot be reached', advice: 'Retry.' },
  shutting_down: { status: 503, retryable: true, title: 'The service is stopping', advice: 'Retry.' },
  internal: {
    status: 500,
    retryable: false,
    title: 'Something went wrong here',
    advice: 'Tell the operator the `requestId`.',
  },
} as const satisfies Record<string, { status: number; retryable: boolean; title: string; advice: string }>

export type ErrorCode = keyof typeof errorCodes
