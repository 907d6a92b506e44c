import { hash } from 'node:crypto'
import type { EndpointResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { FoundSigner, Signer, SignerQuery } from '../store/signers.ts'
import type { User } from '../store/users.ts'
import type { Clock } from '../system.ts'

/** Of the 32 bytes that the secret's hex spells, as the enclave has it in the grant. */
export function hashSid(sid: string): string {
  return hash('sha256', Buffer.from(sid, 'hex'), 'hex')
}

/** Who is signed in. `sid` goes to the enclave with each signing; the database never has it. */
export type SignedIn = { sid: string; session: Session; user: User }

type GetSessionDeps = { store: Pick<Store, 'findSession'>; clock: Clock; sessionIdleMs: number }

/** Throws `not_authenticated` or `session_expired`. An unknown secret and a missing one fail alike. */
export async function getSession(deps: GetSessionDeps, { sid }: { sid: string | undefined }): Promise<SignedIn> {
  if (sid === undefined) throw notAuthenticated()
  const now = deps.clock.now()
  const found = await deps.store.findSession({ sidHash: hashSid(sid), now, idleMs: deps.sessionIdleMs })
  if (found === 'expired') throw sessionExpired()
  if (found === undefined) throw notAuthenticated()
  return { sid, ...found }
}

function notAuthenticated() {
  return new CoordinatorError('not_authenticated', 'not signed in')
}

function sessionExpired() {
  return new CoordinatorError('session_expired', 'the session is over')
}

/** `POST /auth/logout`: the session is gone for every copy of its cookie. */
export async function logout(
  deps: { store: Pick<Store, 'deleteSession'> },
  { session }: Pick<SignedIn, 'session'>,
): Promise<EndpointResponse<'POST /auth/logout'>> {
  await deps.store.deleteSession(session.sidHash)
  return { ok: true }
}

export type SignerFinder = {
  /** Throws `not_authenticated`, `session_expired`, `key_binding_mismatch` or `vault_not_found`. */
  find(asked: Omit<SignerQuery, 'sidHash'> & { sid: string | undefined }): Promise<Signer & { sid: string }>
}

const LIMIT = 256

/**
 * Step 1 of signing: whose session it is, and which key. Requests that come while `slots` lookups are under way share the next. Unlike
 * signings, equal ones do not share an answer that is already on its way: it could be older than a sign-out.
 */
export function createSignerFinder(deps: {
  store: Pick<Store, 'findSigners'>
  clock: Clock
  sessionIdleMs: number
  slots: () => number
}): SignerFinder {
  const { store, clock, sessionIdleMs: idleMs, slots } = deps
  const gatherer = createGatherer<SignerQuery, Signer>({
    async run(asked, { answer }) {
      const found = await store.findSigners({ asked, now: clock.now(), idleMs })
      for (const [index, request] of asked.entries()) {
        const signer = found[index]
        if (typeof signer === 'object') answer(request, { status: 'fulfilled', value: signer })
        else answer(request, { status: 'rejected', reason: toError(signer) })
      }
    },
    limit: LIMIT,
    slots,
  })
  return {
    async find({ sid, ...asked }) {
      if (sid === undefined) throw notAuthenticated()
      return { sid, ...(await gatherer.add({ sidHash: hashSid(sid), ...asked })) }
    },
  }
}

function toError(found: Exclude<FoundSigner, Signer>): CoordinatorError {
  if (found === undefined) return notAuthenticated()
  if (found === 'expired') return sessionExpired()
  if (found === 'vault_not_found') return new CoordinatorError(found, 'there is no such vault')
  return new CoordinatorError('key_binding_mismatch', 'the key does not belong to this user')
}
