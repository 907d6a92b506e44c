import type { Context } from 'hono'
import type { CoordinatorErrorCode } from '../errors.ts'

/** A request as Node has it. */
export type Incoming = { rawHeaders?: string[]; socket?: { remoteAddress?: string | undefined } }

/** What `@hono/node-server` hands over; absent where there is no socket. */
type Bindings = { incoming?: Incoming }

type Variables = {
  requestId: string
  /** The pattern of the route, never the URL itself: a callback's URL carries a code. */
  route: string
  /** The one address that rate limits count. */
  clientAddress: string
  /** The page that a sign-in came from, which is on an allowed origin. */
  returnTo: string
  /** The code of the failure that was answered. */
  failure: CoordinatorErrorCode
}

export type AppEnv = { Bindings: Bindings; Variables: Partial<Variables> }
export type AppContext = Context<AppEnv>

/** The head of a request, whichever way it came. */
export type RequestHead = { method: string; path: string; header(name: string): string | undefined }

/** What guards, rate limits and signed-in routes need of a request and of its answer. Each `AppContext` has it. */
export type RequestContext = {
  req: RequestHead
  get(name: 'clientAddress'): string | undefined
  /** Sets a header of the answer. */
  header(name: string, value: string): void
}
