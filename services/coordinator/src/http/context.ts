import type { Context } from 'hono'
import type { CoordinatorErrorCode } from '../errors.ts'

/** What `@hono/node-server` hands over; absent where there is no socket. */
type Bindings = { incoming?: { rawHeaders?: string[]; socket?: { remoteAddress?: string | undefined } } }

type Variables = {
  requestId: string
  /** The pattern of the route, never the URL itself: a callback's URL carries a code. */
  route: string
  /** The one address that rate limits count. */
  clientAddress: string
  /** The code of the failure that was answered. */
  failure: CoordinatorErrorCode
}

export type AppEnv = { Bindings: Bindings; Variables: Partial<Variables> }
export type AppContext = Context<AppEnv>
