import type { PolicyRefusal } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { CoordinatorError, type CoordinatorErrorCode, coordinatorErrors, toPublicCode } from '../errors.ts'
import type { AppContext } from './context.ts'

/** For each code its title, and what the reader should do about it. */
export const problems: Record<CoordinatorErrorCode, { title: string; advice: string }> = {
  invalid_json: { title: 'The body is not JSON', advice: 'Fix the call: send one JSON object in UTF-8.' },
  invalid_request: { title: 'The request is not valid', advice: 'Fix the call; `detail` names what is wrong.' },
  invalid_digest: { title: 'The digest is not valid', advice: 'Fix the call: `digest` is 0x and 64 hex digits.' },
  invalid_tx_metadata: {
    title: 'The transaction metadata is not valid',
    advice: 'Fix the call; `detail` names the field. `txMetadata` has exactly the members that this page shows.',
  },
  invalid_message: {
    title: 'The message is not valid',
    advice: 'Fix the call: `message` is 0x and the hex of whole bytes.',
  },
  invalid_typed_data: {
    title: 'The typed data is not valid',
    advice: 'Fix the call; `detail` names what is wrong. Only what EIP-712 reads in exactly one way is signed.',
  },
  invalid_policy: {
    title: 'The policy is not valid',
    advice: 'Fix the call; `detail` names what is wrong. A policy has one spelling: every list is in its order.',
  },
  oauth_state_invalid: {
    title: 'The sign-in is unknown or over',
    advice:
      'Start the sign-in again, in the browser that is to be signed in. Each sign-in can be finished once, within 10 minutes.',
  },
  oauth_exchange_failed: {
    title: 'The identity provider did not sign the user in',
    advice:
      'Start the sign-in again. If this persists: the provider must answer with an ID token and an e-mail address.',
  },
  oauth_refused: {
    title: 'The identity provider refused the sign-in',
    advice:
      'Start the sign-in again. If this persists, tell the operator the detail: the provider may not accept the configuration of this service.',
  },
  not_authenticated: { title: 'Not signed in', advice: 'Sign in.' },
  session_expired: { title: 'The session is over', advice: 'Sign in again.' },
  origin_not_allowed: {
    title: 'The origin is not allowed',
    advice: 'Call from a page whose origin the operator has put on the allow-list.',
  },
  grant_invalid: { title: 'The enclave refused the session', advice: 'Sign in again.' },
  key_binding_mismatch: {
    title: 'The key does not belong to this user',
    advice: 'Sign in again. If this persists, tell the operator: database and enclave disagree.',
  },
  policy_refused: {
    title: 'The rules of the vault do not allow this',
    advice:
      'Change the request so that a rule allows it. `detail` explains the refusal of the nearest rule, `refusal` that of each rule. Nothing was signed.',
  },
  approvals_missing: {
    title: 'The vault needs more approvals',
    advice:
      'Have as many passkeys approve as the rule asks for, then sign with all approvals at once. Nothing was signed.',
  },
  approval_invalid: {
    title: 'An approval does not hold',
    advice: 'Approve again: an approval is for one vault, digest and kind, and ends in 24 hours. Nothing was signed.',
  },
  wallet_not_found: { title: 'The user has no wallet', advice: 'Provision one with `POST /wallet/provision`.' },
  vault_not_found: {
    title: 'There is no such vault',
    advice:
      'Use an address that `GET /vaults` lists. To bring a vault back, sign in as its owner, and send its own policy and address.',
  },
  proof_not_found: { title: 'There is no such proof', advice: 'Check the slug.' },
  not_found: { title: 'There is nothing here', advice: 'Check the path.' },
  method_not_allowed: { title: 'The method is not allowed here', advice: 'Use a method that `Allow` names.' },
  not_acceptable: {
    title: 'The format is not available',
    advice: 'Ask for JSON, `application/vnd.ipld.raw` or `application/vnd.ipld.car`, by `Accept` or `?format=`.',
  },
  body_too_large: { title: 'The body is too large', advice: 'Send at most 128 KiB.' },
  message_too_large: {
    title: 'The message is too large to be signed',
    advice: 'Sign at most 32 KiB, as canonical JSON in UTF-8: a message in hex has half as many bytes.',
  },
  unsupported_media_type: { title: 'The body must be JSON', advice: 'Send `Content-Type: application/json`.' },
  wallet_not_provisioned: {
    title: 'The user has no wallet to sign with',
    advice: 'Provision one with `POST /wallet/provision`, then sign.',
  },
  too_many_vaults: {
    title: 'The user has too many vaults',
    advice: 'Use one of those that are there: a user can have 100, and none is ever removed.',
  },
  digest_mismatch: {
    title: 'The digest is not that of the transaction',
    advice: 'Fix the call: `digest` is the keccak256 of the unsigned EIP-1559 transaction that `txMetadata` describes.',
  },
  unsupported_transaction: {
    title: 'This kind of transaction is not supported',
    advice: 'Use an EIP-1559 transaction with a recipient and without an access list.',
  },
  chain_not_allowed: {
    title: 'The service does not sign for this chain',
    advice: 'Use a chain that the operator allows.',
  },
  authorization_not_allowed: {
    title: 'The wallet may not delegate to this code',
    advice: 'Delegate on one chain, to an implementation that the operator allows. Nothing was signed.',
  },
  rate_limited: { title: 'Too many requests', advice: 'Retry after the seconds that `Retry-After` names.' },
  quota_spent: {
    title: 'The quota of signatures is spent',
    advice: 'Retry after the seconds that `Retry-After` names, or ask the operator for more. Nothing was signed.',
  },
  attestation_invalid: {
    title: 'The evidence of the hardware did not hold',
    advice: 'Retry. Nothing was released; if this persists, distrust the service and tell the operator.',
  },
  signature_invalid: {
    title: 'The enclave’s signature did not hold',
    advice: 'Retry. Nothing was released; if this persists, distrust the service and tell the operator.',
  },
  provider_unavailable: {
    title: 'The identity provider cannot be reached',
    advice: 'Retry in a moment, or sign in another way.',
  },
  entropy_unavailable: { title: 'No entropy sample is available', advice: 'Retry. Nothing was signed.' },
  policy_not_pinned: {
    title: 'The rules are not stored safely yet',
    advice: 'Retry: the address is answered once its rules were read back from IPFS.',
  },
  receipt_unavailable: {
    title: 'The receipt cannot be read from IPFS',
    advice:
      'Retry after the seconds that `Retry-After` names. The proof is not lost: its CID is in its on-chain event.',
  },
  enclave_unavailable: { title: 'The key enclave cannot be reached', advice: 'Retry.' },
  collateral_stale: {
    title: 'The vendor’s collateral is out of date',
    advice: 'Retry later. Nothing was signed.',
  },
  log_unavailable: {
    title: 'The public log or its witnesses cannot be reached',
    advice:
      'Retry. No signature of this attempt comes out later, and none leaves the enclave before witnesses have seen it in the log.',
  },
  database_unavailable: { title: 'The database cannot be reached', advice: 'Retry.' },
  shutting_down: { title: 'The service is stopping', advice: 'Retry.' },
  internal: { title: 'Something went wrong here', advice: 'Tell the operator the `requestId`.' },
}

export type Problem = {
  type: string
  title: string
  status: number
  code: CoordinatorErrorCode
  detail?: string
  refusal?: PolicyRefusal
  requestId: string
  retryable: boolean
}

/** The one body of all failures: RFC 9457. Everything that is not a `CoordinatorError` is `internal`, without details. */
export function toProblem(error: unknown, { publicUrl, requestId }: { publicUrl: string; requestId: string }): Problem {
  const code = toPublicCode(error)
  const { details: detail, refusal = undefined } =
    error instanceof CoordinatorError && code !== 'internal' ? error : { details: undefined }
  return {
    type: `${publicUrl}/docs/errors#${code}`,
    title: problems[code].title,
    status: coordinatorErrors[code].status,
    code,
    ...(detail === undefined ? {} : { detail }),
    ...(refusal && { refusal }),
    requestId,
    retryable: coordinatorErrors[code].retryable,
  }
}

/** What operators watch about answers that are failures. */
export type ProblemMetrics = { observeProblem(code: CoordinatorErrorCode): void }

export type ProblemDeps = { publicUrl: string; log: Log; metrics?: ProblemMetrics | undefined }

/** The problem that a failure is answered with. What is our own fault goes to the log too. */
export function reportProblem(
  { publicUrl, log, metrics }: ProblemDeps,
  { error, requestId, route }: { error: unknown; requestId: string; route: string | undefined },
): Problem {
  const problem = toProblem(error, { publicUrl, requestId })
  metrics?.observeProblem(problem.code)
  if (problem.code === 'internal') {
    // Its message could hold anything; its name says enough to look for it.
    const reason = error instanceof Error ? error.name : typeof error
    log.error({ msg: 'Failed', requestId, route, reason })
  }
  return problem
}

export const PROBLEM_TYPE = 'application/problem+json'

export type OnErrorDeps = ProblemDeps & {
  /** The page to show instead where a person will read it; otherwise undefined. */
  toPage(failure: { problem: Problem; error: Error }, context: AppContext): { html: string; csp: string } | undefined
}

/** Answers any failure. */
export function createOnError({ toPage, ...deps }: OnErrorDeps) {
  return (error: Error, context: AppContext): Response => {
    const requestId = context.get('requestId') ?? 'none'
    const problem = reportProblem(deps, { error, requestId, route: context.get('route') })
    context.set('failure', problem.code)
    const status = problem.status as ContentfulStatusCode
    const page = toPage({ problem, error }, context)
    // Through the context, so that what handlers have set (`Allow`, `Retry-After`, a cleared cookie) is kept.
    if (page !== undefined) {
      return context.html(page.html, status, { 'content-security-policy': page.csp, 'cache-control': 'no-store' })
    }
    return context.body(JSON.stringify(problem), status, {
      'content-type': PROBLEM_TYPE,
      'cache-control': 'no-store',
    })
  }
}
