import { type ErrorCode, errorCodes } from '@countersign/protocol/errorCodes'

export type TestProblemCode = ErrorCode

/** A failure that a route returns. */
export type TestProblem = {
  code: TestProblemCode
  detail?: string | undefined
  /** Of `budget_exceeded`. */
  budget?: number | undefined
  left?: string | undefined
  /** Sent as `Retry-After`. */
  retryAfterS?: number | undefined
  /** Other headers, such as `allow`. */
  headers?: Readonly<Record<string, string>> | undefined
}

/** RFC 9457, with the real service's members. */
export function toProblemResponse(problem: TestProblem, parameters: { origin: string; requestId: string }): Response {
  const { code, detail, retryAfterS, budget, left } = problem
  const { status, retryable, title } = errorCodes[code]
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
    ...(left === undefined ? {} : { budget, left }),
    requestId: parameters.requestId,
    retryable,
  }
  return new Response(JSON.stringify(body), { status, headers })
}

/** Thrown by the routes. Any other error is a bug in the test service and reaches the caller. */
export class ProblemFailure extends Error {
  readonly problem: TestProblem
  constructor(problem: TestProblem) {
    super(problem.code)
    this.problem = problem
  }
}
