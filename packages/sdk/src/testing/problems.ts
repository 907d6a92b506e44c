/** The codes that the service answers, each with its status and title, as the real one writes them. */
export const testProblems = {
  invalid_json: { status: 400, title: 'The body is not JSON' },
  invalid_request: { status: 400, title: 'The request is not valid' },
  invalid_digest: { status: 400, title: 'The digest is not valid' },
  invalid_tx_metadata: { status: 400, title: 'The transaction metadata is not valid' },
  invalid_message: { status: 400, title: 'The message is not valid' },
  invalid_typed_data: { status: 400, title: 'The typed data is not valid' },
  invalid_policy: { status: 400, title: 'The policy is not valid' },
  not_authenticated: { status: 401, title: 'Not signed in' },
  session_expired: { status: 401, title: 'The session is over' },
  origin_not_allowed: { status: 403, title: 'The origin is not allowed' },
  grant_invalid: { status: 403, title: 'The enclave refused the session' },
  key_binding_mismatch: { status: 403, title: 'The key does not belong to this user' },
  policy_refused: { status: 403, title: 'The rules of the vault do not allow this' },
  approvals_missing: { status: 403, title: 'The vault needs more approvals' },
  approval_invalid: { status: 403, title: 'An approval does not hold' },
  wallet_not_found: { status: 404, title: 'The user has no wallet' },
  vault_not_found: { status: 404, title: 'There is no such vault' },
  proof_not_found: { status: 404, title: 'There is no such proof' },
  not_found: { status: 404, title: 'There is nothing here' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  wallet_not_provisioned: { status: 409, title: 'The user has no wallet to sign with' },
  too_many_vaults: { status: 409, title: 'The user has too many vaults' },
  body_too_large: { status: 413, title: 'The body is too large' },
  message_too_large: { status: 413, title: 'The message is too large to be signed' },
  unsupported_media_type: { status: 415, title: 'The body must be JSON' },
  digest_mismatch: { status: 422, title: 'The digest is not that of the transaction' },
  unsupported_transaction: { status: 422, title: 'This kind of transaction is not supported' },
  chain_not_allowed: { status: 422, title: 'The service does not sign for this chain' },
  authorization_not_allowed: { status: 422, title: 'The wallet may not delegate to this code' },
  rate_limited: { status: 429, title: 'Too many requests' },
  quota_spent: { status: 429, title: 'The quota of signatures is spent' },
  internal: { status: 500, title: 'Something went wrong here' },
  attestation_invalid: { status: 502, title: 'The evidence of the hardware did not hold' },
  signature_invalid: { status: 502, title: 'The enclave’s signature did not hold' },
  entropy_unavailable: { status: 503, title: 'No entropy sample is available' },
  policy_not_pinned: { status: 503, title: 'The rules are not stored safely yet' },
  receipt_unavailable: { status: 503, title: 'The receipt cannot be read from IPFS' },
  enclave_unavailable: { status: 503, title: 'The key enclave cannot be reached' },
  collateral_stale: { status: 503, title: 'The vendor’s collateral is out of date' },
  log_unavailable: { status: 503, title: 'The public log or its witnesses cannot be reached' },
  database_unavailable: { status: 503, title: 'The database cannot be reached' },
  shutting_down: { status: 503, title: 'The service is stopping' },
} as const satisfies Record<string, { status: number; title: string }>

export type TestProblemCode = keyof typeof testProblems

/** What a route answers instead of doing its work. */
export type TestProblem = {
  code: TestProblemCode
  detail?: string | undefined
  /** Sent as `Retry-After`. */
  retryAfterS?: number | undefined
  /** Other headers of the answer, such as `allow`. */
  headers?: Readonly<Record<string, string>> | undefined
}

/** RFC 9457, with the members that the real service sends. */
export function toProblemResponse(problem: TestProblem, parameters: { origin: string; requestId: string }): Response {
  const { code, detail, retryAfterS } = problem
  const { status, title } = testProblems[code]
  const headers = new Headers({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
  headers.set('x-request-id', parameters.requestId)
  if (retryAfterS !== undefined) headers.set('retry-after', String(retryAfterS))
  for (const [name, value] of Object.entries(problem.headers ?? {})) headers.set(name, value)
  const body = {
    type: `${parameters.origin}/docs/errors#${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    requestId: parameters.requestId,
    // As in the real table: all of these, and no others.
    retryable: status === 429 || status >= 502,
  }
  return new Response(JSON.stringify(body), { status, headers })
}

/** Thrown by the routes; everything else that they throw is a fault of the test service and reaches the caller. */
export class ProblemFailure extends Error {
  readonly problem: TestProblem
  constructor(problem: TestProblem) {
    super(problem.code)
    this.problem = problem
  }
}
