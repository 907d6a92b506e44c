import type { Problem as AnyProblem } from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import type { Log } from '@countersign/service'
import { CoordinatorError, type CoordinatorErrorCode, toPublicCode } from '../errors.ts'
import type { AppContext, HandlerResponse } from './context.ts'

export type Problem = AnyProblem & { code: CoordinatorErrorCode }

/** The body of all failures (RFC 9457). Errors other than `CoordinatorError` become `internal`, without details. */
function toProblem(error: unknown, { publicUrl, requestId }: { publicUrl: string; requestId: string }): Problem {
  const code = toPublicCode(error)
  const { status, retryable, title } = errorCodes[code]
  const {
    details: detail,
    refusal = undefined,
    exceeded = undefined,
  } = error instanceof CoordinatorError && code !== 'internal' ? error : { details: undefined }
  return {
    type: `${publicUrl}/docs/errors#${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    ...(refusal && { refusal }),
    ...exceeded,
    requestId,
    retryable,
  }
}

/** Counts failures by code. */
export type ProblemMetrics = { observeProblem(code: CoordinatorErrorCode): void }

export type OnErrorDeps = {
  publicUrl: string
  log: Log
  metrics?: ProblemMetrics | undefined
  /** Returns the HTML page to send to a browser, or undefined for JSON. */
  toPage(problem: Problem, c: AppContext): { html: string; csp: string } | undefined
}

/**
 * Turns an error into a response and logs `internal` errors. Keeps the headers that handlers have set, such as `Allow`, `Retry-After` or a
 * cleared cookie.
 */
export function createOnError({ publicUrl, log, metrics, toPage }: OnErrorDeps) {
  return (error: unknown, c: AppContext): HandlerResponse => {
    const { requestId, route } = c
    const problem = toProblem(error, { publicUrl, requestId })
    const { code, status } = problem
    metrics?.observeProblem(code)
    if (code === 'internal') {
      // Only the error's name is logged: its message could contain secrets.
      const reason = error instanceof Error ? error.name : typeof error
      log.error({ msg: 'Failed', requestId, route, reason })
    }
    c.failure = code
    c.header('cache-control', 'no-store')
    const page = toPage(problem, c)
    if (page !== undefined) {
      c.header('content-security-policy', page.csp)
      return c.html(page.html, status)
    }
    c.header('content-type', 'application/problem+json')
    return { status, body: JSON.stringify(problem) }
  }
}
