import { setImmediate } from 'node:timers/promises'
import { createTrustedProxies, type Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Random } from '../system.ts'
import { toAddressGroup, toClientAddress } from './clientAddress.ts'
import type { AppContext, Headers, Incoming, RequestContext, RequestHead } from './context.ts'
import { toSiliconHeaders } from './markMock.ts'
import { assertNotEmbedded, assertOrigin, isProviderForm, toCorsHeaders } from './origin.ts'
import { toRequestId } from './requestId.ts'
import { createSecurityHeaders } from './securityHeaders.ts'

/** State of a request, from its start. */
type StartedRequest = {
  requestId: string
  /** The address that rate limits count. */
  clientAddress: string
  startedAt: number
  /** Defaults that the handler may overwrite. */
  headers: Headers
}

/** Checks and bookkeeping before and after every route. */
export type Guards = {
  begin(head: RequestHead, incoming: Incoming): StartedRequest
  /** Rejects requests after the stop, and cross-site requests. */
  admit(c: RequestContext, incoming: Incoming): void
  /** Called once per request, also for failures. Writes the log line and sets the common headers. */
  end(c: AppContext, outcome: { status: number; startedAt: number }): void
  /**
   * Makes `/health/ready` fail and closes each connection after its response. Resolves when all requests have been answered, including new
   * ones: a load balancer may send them before it notices. Rejects later requests with `shutting_down`.
   */
  stop(): Promise<void>
}

export function createGuards(deps: {
  config: { allowedOrigins: readonly string[]; trustedProxies: readonly string[] }
  isHttps: boolean
  isMock: boolean
  clock: Clock
  random: Random
  log: Log
}): Guards {
  const { config, clock, random, log } = deps
  const isTrusted = createTrustedProxies(config.trustedProxies)
  const securityHeaders = createSecurityHeaders(deps)
  const siliconHeaders = toSiliconHeaders(deps)
  let underWay = 0
  let isStopping = false
  let isStopped = false
  let onIdle: (() => void) | undefined

  return {
    begin(head, incoming) {
      const startedAt = clock.now()
      const requestId = toRequestId(head.header('x-request-id'), random)
      const socketAddress = incoming.socket.remoteAddress
      const forwardedFor = head.header('x-forwarded-for')
      const clientAddress = toAddressGroup(toClientAddress({ socketAddress, forwardedFor, isTrusted }))
      underWay += 1
      return { requestId, clientAddress, startedAt, headers: securityHeaders(head.path) }
    },
    admit(c, incoming) {
      const { req: head } = c
      const { method, path } = head
      // `/health` must keep succeeding: a failed liveness probe would kill a process that is finishing its work.
      if ((isStopped && path !== '/health') || (isStopping && path === '/health/ready')) {
        throw new CoordinatorError('shutting_down', 'the service is stopping')
      }
      // RFC 9112 §3.2. A proxy may have used the other one.
      if (isNamedTwice(incoming.rawHeaders, 'host')) {
        throw new CoordinatorError('invalid_request', 'more than one Host header', {
          details: 'expected one Host header',
        })
      }
      if (method === 'OPTIONS') return
      if (method === 'GET' || method === 'HEAD' || isProviderForm(path)) {
        assertNotEmbedded(config, head)
      } else {
        const hasCookie = head.header('cookie') !== undefined
        assertOrigin(config, { origin: head.header('origin'), fetchSite: head.header('sec-fetch-site'), hasCookie })
      }
    },
    end({ req: { method, path, header }, requestId, route, failure, headers }, { status, startedAt }) {
      underWay -= 1
      if (underWay === 0) onIdle?.()
      const durationMs = clock.now() - startedAt
      log.info({ msg: 'Answered', requestId, method, route, status, code: failure, durationMs })
      Object.assign(headers, toCorsHeaders(config, { origin: header('origin'), path, method }), siliconHeaders)
      headers['x-request-id'] = requestId
      if (isStopping) headers.connection = 'close'
    },
    async stop() {
      isStopping = true
      await setImmediate()
      if (underWay > 0) await new Promise<void>((resolve) => (onIdle = resolve))
      isStopped = true
      // The server writes the last response in this turn of the event loop.
      await setImmediate()
    },
  }
}

/** Whether the raw headers contain `name` (lower case) more than once. Names are at even indexes. */
export function isNamedTwice(rawHeaders: readonly string[] = [], name: string): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const text = rawHeaders[index] as string
    if (text.length === name.length && text.toLowerCase() === name) count += 1
  }
  return count > 1
}
