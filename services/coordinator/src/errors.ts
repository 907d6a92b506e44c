import { type PolicyRefusal, type Problem, ServiceError, type ServiceErrorOptions } from '@countersign/protocol'
import { type ErrorCode, errorCodes } from '@countersign/protocol/errorCodes'

export type CoordinatorErrorCode = ErrorCode

/** A failure with a code and `details` for the caller. Neither may reveal internals. */
export class CoordinatorError extends ServiceError<CoordinatorErrorCode> {
  override name = 'CoordinatorError'
  /** For `policy_refused`: the verdict of each rule. */
  readonly refusal: PolicyRefusal | undefined
  /** For `budget_exceeded`: the index of the budget, and what it still allows. */
  readonly exceeded: Pick<Problem, 'budget' | 'left'> | undefined

  constructor(
    code: CoordinatorErrorCode,
    message: string,
    options?: ServiceErrorOptions & { refusal?: PolicyRefusal; exceeded?: Pick<Problem, 'budget' | 'left'> },
  ) {
    super(code, message, options)
    this.refusal = options?.refusal
    this.exceeded = options?.exceeded
  }
}

export function invalidRequest(details: string): CoordinatorError {
  return invalidBody('invalid_request', details)
}

/** For `parseRequest`. */
export function invalidBody(code: CoordinatorErrorCode, details: string): CoordinatorError {
  return new CoordinatorError(code, 'invalid request', { details })
}

/** The enclave's response doesn't match the request, or is not proven. */
export function invalidAnswer(details?: string): CoordinatorError {
  return new CoordinatorError('attestation_invalid', 'the enclave’s answer is invalid', { details })
}

/** No enclave can count against the budgets of a vault now. */
export function budgetUnavailable(details: string): CoordinatorError {
  return new CoordinatorError('budget_unavailable', 'the budgets cannot be used', { details })
}

/** The enclave derives another key for a vault than is stored. */
export function vaultKeyChanged(): CoordinatorError {
  return new CoordinatorError('key_binding_mismatch', 'the key of this vault has changed')
}

/** The public code of an error: `internal` for everything that is not a `CoordinatorError`. */
export function toPublicCode(error: unknown): CoordinatorErrorCode {
  return error instanceof CoordinatorError && Object.hasOwn(errorCodes, error.code) ? error.code : 'internal'
}
