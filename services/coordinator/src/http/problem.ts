import type { Problem as AnyProblem } from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import type { Log } from '@countersign/service'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { CoordinatorError, type CoordinatorErrorCode, toPublicCode } from '../errors.ts'
import type { AppContext } from './context.ts'

export type Problem = AnyProblem & { code: CoordinatorErrorCode }

/** The one body of all failures: RFC 9457. Everything that is not a `CoordinatorError` is `internal`, without details. */
export function toProblem(error: unknown, { publicUrl, requestId }: { publicUrl: string; requestId: string }): Problem {
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
