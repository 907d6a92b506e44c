import { setImmediate } from 'node:timers/promises'
import { createTrustedProxies, type Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Random } from '../system.ts'
import { toAddressGroup, toClientAddress } from './clientAddress.ts'
import type { AppContext, Headers, Incoming, RequestContext, RequestHead } from './context.ts'
import { toSiliconHeaders } from './markMock.ts'
import { assertNotPlanted, assertOrigin, isProviderForm, toCorsHeaders } from './origin.ts'
import { toRequestId } from './requestId.ts'
import { createSecurityHeaders } from './securityHeaders.ts'

/** A request that has begun. */
type Begun = {
  requestId: string
  /** The one address that rate limits count. */
  clientAddress: string
  startedAt: number
  /** Defaults, which an answer may replace. */
  headers: Headers
}

/** What every request passes before and after its route. */
export type Guards = {
  begin(head: RequestHead, incoming: Incoming): Begun
  /** Throws for requests once it has stopped, and for those of foreign pages. */
  admit(c: RequestContext, incoming: Incoming): void
  /** Once for each that has begun, however it ended: writes the log line, and sets the headers that every answer has. */
  end(c: AppContext, outcome: { status: number; startedAt: number }): void
  /**
   * From now on it is not ready, and each answer ends its connection. Resolves when all requests have been answered, those too that
   * arrive meanwhile: a balancer may have sent them just before it could know. Later ones are refused with `shutting_down`.
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
      // A failed liveness probe would kill a process that is finishing its work.
      if ((isStopped && path !== '/health') || (isStopping && path === '/health/ready')) {
        throw new CoordinatorError('shutting_down', 'the service is stopping')
      }
      // RFC 9112 §3.2: a proxy in between may have read the other one.
      if (isNamedTwice(incoming.rawHeaders, 'host')) {
        throw new CoordinatorError('invalid_request', 'two hosts', { details: 'expected one Host header' })
      }
      if (method === 'OPTIONS') return
      if (method === 'GET' || method === 'HEAD' || isProviderForm(path)) {
        assertNotPlanted(config, head)
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
      // The server writes the last answer in this turn.
      await setImmediate()
    },
  }
}

/** Whether two lines of the head have this name, which is in lower case. Names are at even indexes. */
export function isNamedTwice(rawHeaders: readonly string[] = [], name: string): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const text = rawHeaders[index] as string
    if (text.length === name.length && text.toLowerCase() === name) count += 1
  }
  return count > 1
}
