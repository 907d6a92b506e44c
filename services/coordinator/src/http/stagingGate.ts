import { createPasswordGuard } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { Clock } from '../ports.ts'
import type { RequestContext } from './context.ts'
import { createRateLimiter } from './rateLimit.ts'

/** Where a person gives the password. */
export const STAGING_PATH = '/staging'

/** A staging as the app knows it. */
export type StagingConfig = {
  password: string
}

/** Before everything that a staging serves. */
export type StagingGate = {
  /** Of a browser that was let in. */
  cookie: string
  /** Throws for a caller without the password, and for one that guesses too often, who is not listened to any more. */
  assertAdmitted(c: RequestContext): void
  /** Throws as above unless this is the password. */
  assertPassword(c: RequestContext, text: string): void
}

/** Wrong passwords from one address: ten at once, then one in half a minute. */
const GUESSES = { count: 10, seconds: 300 }

/** What says nothing that a stranger should not know: probes of the orchestrator, and the page that asks for the password. */
const OPEN: ReadonlySet<string> = new Set(['/health', '/health/ready', STAGING_PATH])

export function createStagingGate({ password, clock }: { password: string; clock: Clock }): StagingGate {
  const guard = createPasswordGuard(password)
  const guesses = createRateLimiter({ limit: GUESSES, clock })

  const toKey = (c: RequestContext) => c.get('clientAddress') ?? ''

  function assertListening(c: RequestContext): void {
    const seconds = guesses.getWaitSeconds(toKey(c))
    if (seconds === 0) return
    c.header('Retry-After', String(seconds))
    throw new CoordinatorError('rate_limited', 'too many wrong passwords')
  }

  function refuse(c: RequestContext): never {
    guesses.take(toKey(c))
    throw new NotAdmittedError('the password is wrong')
  }

  return {
    cookie: guard.cookie,
    assertAdmitted(c) {
      const head = c.req
      // A preflight carries no credentials and changes nothing.
      if (OPEN.has(head.path) || head.method === 'OPTIONS') return
      // Others may have guessed from this address: who was let in stays in, whatever else is sent along.
      if (guard.check({ authorization: undefined, cookie: head.header('cookie') }) === 'admitted') return
      const authorization = head.header('authorization')
      if (authorization !== undefined) assertListening(c)
      const admission = guard.check({ authorization, cookie: undefined })
      if (admission === 'wrong') refuse(c)
      if (admission !== 'admitted')
        throw new NotAdmittedError(`the password is missing: give it at ${STAGING_PATH}, or by Basic`)
    },
    assertPassword(c, text) {
      assertListening(c)
      if (!guard.isPassword(text)) refuse(c)
    },
  }
}

/** The password is missing or wrong: a person is shown the page that asks for it. */
export class NotAdmittedError extends CoordinatorError {
  constructor(details: string) {
    super('not_authenticated', 'staging needs its password', { details: `staging: ${details}` })
  }
}
