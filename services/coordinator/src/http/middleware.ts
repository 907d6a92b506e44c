import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from './context.ts'
import type { Guards } from './guards.ts'
import { toMarkedPage } from './markMock.ts'
import { type OriginRules, toPreflightHeaders } from './origin.ts'

/** The guards as the framework has them. */
export type Middleware = {
  /** Sets the request id and the response headers, and writes the log line, for failures too. */
  record: MiddlewareHandler<AppEnv>
  /** Refuses what the guards refuse. Answers preflights. */
  admit: MiddlewareHandler<AppEnv>
}

export function createMiddleware(deps: { guards: Guards; origins: OriginRules; isMock: boolean }): Middleware {
  const { guards, origins, isMock } = deps
  return {
    async record(c, next) {
      const begun = guards.begin(c.req, c.env?.incoming)
      c.set('requestId', begun.requestId)
      c.set('clientAddress', begun.clientAddress)
      try {
        await next()
        const isPage = c.res.headers.get('content-type')?.startsWith('text/html') ?? false
        if (isMock && isPage) c.res = await toMarkedPage(c.res)
      } finally {
        guards.leave()
      }
      const { headers, status } = c.res
      const outcome = { route: c.get('route'), status, failure: c.get('failure') }
      const { defaults, fixed } = guards.end(c.req, begun, outcome)
      for (const [name, value] of Object.entries(defaults)) if (!headers.has(name)) headers.set(name, value)
      for (const [name, value] of Object.entries(fixed)) headers.set(name, value)
      headers.append('vary', 'Origin')
    },
    async admit(c, next) {
      const { method, path } = c.req
      guards.admit(c, c.env?.incoming)
      const origin = c.req.header('origin')
      const requestedMethod = c.req.header('access-control-request-method')
      if (method === 'OPTIONS' && origin !== undefined && requestedMethod !== undefined) {
        c.set('route', 'preflight')
        const headers = toPreflightHeaders(origins, { origin, path, requestedMethod })
        headers.vary = 'Access-Control-Request-Method, Access-Control-Request-Headers'
        return new Response(null, { status: 204, headers })
      }
      await next()
    },
  }
}
