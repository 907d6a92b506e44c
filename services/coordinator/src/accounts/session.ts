import { hash } from 'node:crypto'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { User } from '../store/users.ts'
import type { Clock } from '../system.ts'

/** Of the 32 bytes that the secret's hex spells, as the enclave has it in the grant. */
export function hashSid(sid: string): string {
  return hash('sha256', Buffer.from(sid, 'hex'), 'hex')
}

/** Who is signed in. `sid` goes to the enclave with each signing; the database never has it. */
export type SignedIn = { sid: string; session: Session; user: User }

export type GetSessionDeps = { store: Pick<Store, 'findSession'>; clock: Clock; sessionIdleMs: number }

/** Throws `not_authenticated` or `session_expired`. An unknown secret and a missing one fail alike. */
export async function getSession(deps: GetSessionDeps, { sid }: { sid: string | undefined }): Promise<SignedIn> {
  if (sid === undefined) throw notAuthenticated()
  const now = deps.clock.now()
  const found = await deps.store.findSession({ sidHash: hashSid(sid), now, idleMs: deps.sessionIdleMs })
  if (found === 'expired') throw sessionExpired()
  if (found === undefined) throw notAuthenticated()
  return { sid, ...found }
}

export function notAuthenticated() {
  return new CoordinatorError('not_authenticated', 'not signed in')
}

export function sessionExpired() {
  return new CoordinatorError('session_expired', 'the session is over')
}
