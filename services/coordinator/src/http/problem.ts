import type { Problem as AnyProblem } from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import type { Log } from '@countersign/service'
import { CoordinatorError, type CoordinatorErrorCode, toPublicCode } from '../errors.ts'
import type { Answer, AppContext } from './context.ts'

export type Problem = AnyProblem & { code: CoordinatorErrorCode }

/** The one body of all failures: RFC 9457. Everything that is not a `CoordinatorError` is `internal`, without details. */
function toProblem(error: unknown, { publicUrl, requestId }: { publicUrl: string; requestId: string }): Problem {
  const code = toPublicCode(error)
  const { status, retryable, title } = errorCodes[code]
  const { details: detail, refusal = undefined } =
    error instanceof CoordinatorError && code !== 'internal' ? error : { details: undefined }
  return {
    type: `${publicUrl}/docs/errors#${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    ...(refusal && { refusal }),
    requestId,
    retryable,
  }
}

/** What operators watch about answers that are failures. */
export type ProblemMetrics = { observeProblem(code: CoordinatorErrorCode): void }

export type OnErrorDeps = {
  publicUrl: string
  log: Log
  metrics?: ProblemMetrics | undefined
  /** The page to show instead where a person will read it; otherwise undefined. */
  toPage(problem: Problem, c: AppContext): { html: string; csp: string } | undefined
}

/** Answers any failure. What is our own fault goes to the log too. Headers that handlers have set (`Allow`, `Retry-After`, a cleared cookie) are kept. */
export function createOnError({ publicUrl, log, metrics, toPage }: OnErrorDeps) {
  return (error: unknown, c: AppContext): Answer => {
    const { requestId, route } = c
    const problem = toProblem(error, { publicUrl, requestId })
    const { code, status } = problem
    metrics?.observeProblem(code)
    if (code === 'internal') {
      // Its message could hold anything; its name says enough to look for it.
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
