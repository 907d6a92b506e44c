import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { CoordinatorErrorCode } from '../errors.ts'
import type { Target } from './readTarget.ts'

/** A request as Node has it. */
export type Incoming = Readable &
  Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
    method?: string | undefined
    url?: string | undefined
    socket: { remoteAddress?: string | undefined }
  }

/** The head of a request. */
export type RequestHead = Target & { method: string; header(name: string): string | undefined }

/** What guards, rate limits and signed-in routes need of a request and of its answer. */
export type RequestContext = {
  req: RequestHead
  /** The one address that rate limits count. */
  clientAddress: string
  /** Sets a header of the answer, or adds one where there may be several. */
  header(name: string, value: string, options?: { append: boolean }): void
}

type Body = string | Uint8Array | ReadableStream<Uint8Array> | null

/** Without headers: those are set through the context. `latin1` is for texts that have a character for each byte. */
export type Answer = { status: number; body: Body; encoding?: 'latin1' | undefined }

export type Headers = Record<string, string | string[]>

/** What a handler gets: a request, and ways to answer it. */
export type AppContext = RequestContext & {
  incoming: Incoming
  requestId: string
  /** Aborts when the caller is gone. */
  getSignal(): AbortSignal
  /** What stands for the `:names` in the path of the route. */
  params: Readonly<Record<string, string>>
  /** The pattern of the route, never the URL itself: a callback's URL carries a code. */
  route: string | undefined
  /** The page that a sign-in came from, which is on an allowed origin. */
  returnTo: string | undefined
  /** The code of the failure that was answered. */
  failure: CoordinatorErrorCode | undefined
  /** Of the answer, by their names in lower case. */
  headers: Headers
  json(value: unknown, status?: number): Answer
  html(text: string, status?: number): Answer
  redirect(location: string, status?: number): Answer
}

type ContextParameters = Pick<AppContext, 'incoming' | 'req' | 'requestId' | 'clientAddress' | 'getSignal' | 'headers'>

export const toQuery = ({ search }: RequestHead) => new URLSearchParams(search)

const NO_PARAMS = {}

/** Without spreads: one is made for every request. */
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
