import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { CoordinatorErrorCode } from '../errors.ts'
import type { Target } from './readTarget.ts'

/** A Node request, or a fake of it. */
export type Incoming = Readable &
  Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
    method?: string | undefined
    url?: string | undefined
    socket: { remoteAddress?: string | undefined }
  }

/** The head of a request. */
export type RequestHead = Target & { method: string; header(name: string): string | undefined }

/** The part of the context that guards, rate limits and authenticated routes use. */
export type RequestContext = {
  req: RequestHead
  /** The address that rate limits count. */
  clientAddress: string
  /** Sets a response header, or appends to it. */
  header(name: string, value: string, options?: { append: boolean }): void
}

type Body = string | Uint8Array | ReadableStream<Uint8Array> | null

/** Headers are set through the context. `latin1` is for text with one byte per character. */
export type HandlerResponse = { status: number; body: Body; encoding?: 'latin1' | undefined }

export type Headers = Record<string, string | string[]>

/** A request, and functions that create its response. */
export type AppContext = RequestContext & {
  incoming: Incoming
  requestId: string
  /** Aborts when the caller disconnects. */
  getSignal(): AbortSignal
  /** The values of the route's `:name` segments. */
  params: Readonly<Record<string, string>>
  /** The route's pattern. Logs must not contain the URL, because a callback's URL contains a code. */
  route: string | undefined
  /** The page to return to after a sign-in. Its origin is allowed. */
  returnTo: string | undefined
  /** The error code of the response. */
  failure: CoordinatorErrorCode | undefined
  /** Response headers, by lower-case name. */
  headers: Headers
  json(value: unknown, status?: number): HandlerResponse
  html(text: string, status?: number): HandlerResponse
  redirect(location: string, status?: number): HandlerResponse
}

type ContextParameters = Pick<AppContext, 'incoming' | 'req' | 'requestId' | 'clientAddress' | 'getSignal' | 'headers'>

export const toQuery = ({ search }: RequestHead) => new URLSearchParams(search)

const NO_PARAMS = {}

/** Called for every request, so it avoids spreads. */
export function createContext(parameters: ContextParameters): AppContext {
  const { incoming, req, requestId, clientAddress, getSignal, headers } = parameters
  return {
    incoming,
    req,
    requestId,
    clientAddress,
    getSignal,
    headers,
    params: NO_PARAMS,
    route: undefined,
    returnTo: undefined,
    failure: undefined,
    header(name, value, options) {
      const key = name.toLowerCase()
      const earlier = options?.append ? headers[key] : undefined
      headers[key] = earlier === undefined ? value : [earlier, value].flat()
    },
    json(value, status = 200) {
      headers['content-type'] = 'application/json'
      return { status, body: JSON.stringify(value) }
    },
    html(text, status = 200) {
      headers['content-type'] = 'text/html; charset=UTF-8'
      return { status, body: text }
    },
    redirect(location, status = 302) {
      headers.location = location
      return { status, body: null }
    },
  }
}
