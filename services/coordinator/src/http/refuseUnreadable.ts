import type { Log } from '@countersign/service'
import { RequestError } from '@hono/node-server'
import { CoordinatorError } from '../errors.ts'
import type { Random } from '../system.ts'
import { toSiliconHeaders } from './markMock.ts'
import { PROBLEM_TYPE, toProblem } from './problem.ts'
import { toRequestId } from './requestId.ts'
import { createSecurityHeaders } from './securityHeaders.ts'

/** Answers requests whose target or `Host` is no address, as any other failure is answered; no route ever sees them. */
export function createRefuseUnreadable(deps: {
  publicUrl: string
  isHttps: boolean
  isMock: boolean
  random: Random
  log: Log
}) {
  const { publicUrl, random, log } = deps
  const securityHeaders = createSecurityHeaders(deps)
  return (error: unknown): Response => {
    const requestId = toRequestId(undefined, random)
    const reported =
      error instanceof RequestError
        ? new CoordinatorError('invalid_request', 'unreadable', { details: 'the target or the host cannot be read' })
        : error
    const problem = toProblem(reported, { publicUrl, requestId })
    const { status, code } = problem
    log.info({ msg: 'Answered', requestId, status, code })
    return new Response(JSON.stringify(problem), {
      status,
      headers: {
        ...securityHeaders('/'),
        ...toSiliconHeaders(deps),
        'content-type': PROBLEM_TYPE,
        'x-request-id': requestId,
      },
    })
  }
}
