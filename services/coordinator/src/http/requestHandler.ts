import { CoordinatorError } from '../errors.ts'
import {
  type AppContext,
  createContext,
  type HandlerResponse,
  type Headers,
  type Incoming,
  type RequestHead,
} from './context.ts'
import type { Guards } from './guards.ts'
import { toMarkedPage } from './markMock.ts'
import { type OriginRules, toPreflightHeaders } from './origin.ts'
import { readTarget } from './readTarget.ts'

export type HttpResponse = HandlerResponse & { headers: Headers }

/**
 * Answers a request. Returns a promise only if the route is asynchronous. `getSignal` returns a signal that aborts when the caller
 * disconnects.
 */
export type HandleRequest = (incoming: Incoming, getSignal: () => AbortSignal) => HttpResponse | Promise<HttpResponse>

type Deps = {
  guards: Guards
  origins: OriginRules
  isMock: boolean
  route(c: AppContext): HandlerResponse | Promise<HandlerResponse>
  onError(error: unknown, c: AppContext): HandlerResponse
}

const UNREADABLE = { path: '/', rawPath: '/', search: '' }

/** Runs the guards, then the preflight answer or the route, and adds the common headers. */
export function createRequestHandler({ guards, origins, isMock, route, onError }: Deps): HandleRequest {
  function answerPreflight(c: AppContext): HandlerResponse | undefined {
    const { method, path, header } = c.req
    const origin = header('origin')
    const requestedMethod = header('access-control-request-method')
    if (method !== 'OPTIONS' || origin === undefined || requestedMethod === undefined) return undefined
    c.route = 'preflight'
    Object.assign(c.headers, toPreflightHeaders(origins, { origin, path, requestedMethod }))
    c.headers.vary = 'Access-Control-Request-Method, Access-Control-Request-Headers'
    return { status: 204, body: null }
  }

  return (incoming, getSignal) => {
    const target = readTarget(incoming)
    const { path, rawPath, search } = target ?? UNREADABLE
    const req: RequestHead = {
      path,
      rawPath,
      search,
      method: incoming.method ?? '',
      header(name) {
        const value = incoming.headers[name]
        // Only `set-cookie` is an array, and requests don't use it.
        return typeof value === 'string' ? value : undefined
      },
    }
    const begun = guards.begin(req, incoming)
    const c = createContext({ req, incoming, getSignal, ...begun })
    const end = (answer: HandlerResponse): HttpResponse => {
      guards.end(c, { status: answer.status, startedAt: begun.startedAt })
      const { headers } = c
      const { status, body, encoding } = isMock ? toMarkedPage(answer, headers) : answer
      headers.vary = headers.vary === undefined ? 'Origin' : `${headers.vary}, Origin`
      return { status, body, encoding, headers }
    }
    const fail = (error: unknown) => end(onError(error, c))
    let answer: HandlerResponse | Promise<HandlerResponse>
    try {
      if (target === undefined) throw unreadable()
      guards.admit(c, incoming)
      answer = answerPreflight(c) ?? route(c)
    } catch (error) {
      return fail(error)
    }
    return answer instanceof Promise ? answer.then(end, fail) : end(answer)
  }
}

function unreadable() {
  return new CoordinatorError('invalid_request', 'unreadable', { details: 'invalid request target or Host header' })
}
