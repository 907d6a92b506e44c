import type { Log } from '@countersign/service'
import type { MiddlewareHandler } from 'hono'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Random } from '../ports.ts'
import { createTrustedProxies, toAddressGroup, toClientAddress } from './clientAddress.ts'
import type { AppEnv } from './context.ts'
import { assertOrigin, isProviderForm, toCorsHeaders, toPreflightHeaders } from './origin.ts'
import { toRequestId } from './requestId.ts'
import { toSecurityHeaders } from './securityHeaders.ts'

/** What every request passes through before and after its route. */
export type Middleware = {
  /** Sets the request id and the response headers, and writes the log line, for failures too. */
  record: MiddlewareHandler<AppEnv>
  /** Refuses requests once it has stopped, and those of foreign pages. Answers preflights. */
  admit: MiddlewareHandler<AppEnv>
  /**
   * From now on it is not ready, and each answer ends its connection. Resolves when all requests have been answered, those too that
   * arrive meanwhile: a balancer may have sent them just before it could know. Later ones are refused with `shutting_down`.
   */
  stop(): Promise<void>
}

export function createMiddleware(deps: {
  config: { publicUrl: string; allowedOrigins: readonly string[]; trustedProxies: readonly string[] }
  isHttps: boolean
  clock: Clock
  random: Random
  log: Log
}): Middleware {
  const { config, isHttps, clock, random, log } = deps
  const isTrusted = createTrustedProxies(config.trustedProxies)
  let underWay = 0
  let isStopping = false
  let isStopped = false
  let onIdle: (() => void) | undefined

  const record: Middleware['record'] = async (c, next) => {
    const startedAt = clock.now()
    const { method, path } = c.req
    const requestId = toRequestId(c.req.header('x-request-id'), random)
    c.set('requestId', requestId)
    const socketAddress = c.env?.incoming?.socket?.remoteAddress
    const forwardedFor = c.req.header('x-forwarded-for')
    c.set('clientAddress', toAddressGroup(toClientAddress({ socketAddress, forwardedFor, isTrusted })))
    underWay += 1
    try {
      await next()
    } finally {
      underWay -= 1
      if (underWay === 0) onIdle?.()
    }
    const { headers } = c.res
    for (const [name, value] of Object.entries(toSecurityHeaders({ path, isHttps }))) {
      if (!headers.has(name)) headers.set(name, value)
    }
    const cors = toCorsHeaders(config, { origin: c.req.header('origin'), path, method })
    for (const [name, value] of Object.entries(cors)) headers.set(name, value)
    headers.append('vary', 'Origin')
    headers.set('x-request-id', requestId)
    if (isStopping) headers.set('connection', 'close')
    log.info({
      msg: 'Answered',
      requestId,
      method,
      route: c.get('route'),
      status: c.res.status,
      code: c.get('failure'),
      durationMs: clock.now() - startedAt,
    })
  }

  const admit: Middleware['admit'] = async (c, next) => {
    const { method, path } = c.req
    // A failed liveness probe would kill a process that is finishing its work.
    if ((isStopped && path !== '/health') || (isStopping && path === '/health/ready')) {
      throw new CoordinatorError('shutting_down', 'the service is stopping')
    }
    if (hasTwoHosts(c.env?.incoming?.rawHeaders)) {
      throw new CoordinatorError('invalid_request', 'two hosts', { details: 'there is more than one Host' })
    }
    const origin = c.req.header('origin')
    const requestedMethod = c.req.header('access-control-request-method')
    if (method === 'OPTIONS' && origin !== undefined && requestedMethod !== undefined) {
      c.set('route', 'preflight')
      const headers = toPreflightHeaders(config, { origin, path, requestedMethod })
      headers.vary = 'Access-Control-Request-Method, Access-Control-Request-Headers'
      return new Response(null, { status: 204, headers })
    }
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && !isProviderForm(path)) {
      const hasCookie = c.req.header('cookie') !== undefined
      assertOrigin(config, { origin, fetchSite: c.req.header('sec-fetch-site'), hasCookie })
    }
    await next()
  }

  return {
    record,
    admit,
    async stop() {
      isStopping = true
      await new Promise((resolve) => setImmediate(resolve))
      if (underWay > 0) await new Promise<void>((resolve) => (onIdle = resolve))
      isStopped = true
    },
  }
}

/** RFC 9112 §3.2: a proxy in between may have read the other one. Names are at even indexes. */
function hasTwoHosts(rawHeaders: readonly string[] = []): boolean {
  return (
    rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host').length > 1
  )
}
