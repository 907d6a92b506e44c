import { hash } from 'node:crypto'
import type { EndpointRequest, EndpointResponse } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { ListedSession, Session } from '../store/sessions.ts'
import type { FoundSigner, Signer, SignerQuery } from '../store/signers.ts'
import type { User } from '../store/users.ts'
import type { Clock } from '../system.ts'

/** Hashes the secret's 32 bytes, as the enclave does for the grant. */
export function hashSid(sid: string): string {
  return hash('sha256', Buffer.from(sid, 'hex'), 'hex')
}

/** An authenticated user. Each signing sends `sid` to the enclave. The database never stores it. */
export type SignedIn = { sid: string; session: Session; user: User }

type GetSessionDeps = { store: Pick<Store, 'findSession'>; clock: Clock; sessionIdleMs: number }

/** Throws `not_authenticated` or `session_expired`. A missing secret and an unknown one give the same error. */
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
  return new CoordinatorError('session_expired', 'the session has expired')
}

type LogoutDeps = { store: Pick<Store, 'deleteSession' | 'deleteSessions' | 'listSessions'> } & ListSessionsDeps

/**
 * `POST /auth/logout`. Deletes this session, another one of the user, or all of them, so that all copies of their secrets become invalid.
 * Returns whether this session has ended.
 */
export async function logout(
  deps: LogoutDeps,
  { session, user }: Pick<SignedIn, 'session' | 'user'>,
  { session: id, all }: EndpointRequest<'POST /auth/logout'>,
): Promise<boolean> {
  if (all) {
    await deps.store.deleteSessions(user.id)
    return true
  }
  if (id === undefined || id === toSessionId(session)) {
    await deps.store.deleteSession(session.sidHash)
    return true
  }
  const open = await findOpen(deps, user.id)
  const other = open.find((one) => toSessionId(one) === id)
  if (other !== undefined) await deps.store.deleteSession(other.sidHash)
  return false
}

type ListSessionsDeps = { store: Pick<Store, 'listSessions'>; clock: Clock; sessionIdleMs: number }

function findOpen({ store, clock, sessionIdleMs: idleMs }: ListSessionsDeps, userId: string): Promise<ListedSession[]> {
  return store.listSessions({ userId, now: clock.now(), idleMs })
}

/** `GET /auth/sessions`. */
export async function listSessions(
  deps: ListSessionsDeps,
  { session, user }: Pick<SignedIn, 'session' | 'user'>,
): Promise<EndpointResponse<'GET /auth/sessions'>> {
  const sessions = await findOpen(deps, user.id)
  return {
    sessions: sessions.map((one) => ({
      id: toSessionId(one),
      ...describeSession(one),
      lastSeenAt: new Date(one.lastSeenAt).toISOString(),
      isCurrent: one.sidHash === session.sidHash,
    })),
  }
}

/** `GET /auth/session`. */
export function toSessionInfo(session: Session, clock: Clock): EndpointResponse<'GET /auth/session'> {
  const { clientKey = null } = session
  return { ...describeSession(session), clientKey, time: new Date(clock.now()).toISOString() }
}

/** Names a session for its user. It authorizes nothing. */
const toSessionId = ({ sidHash }: Pick<Session, 'sidHash'>) => sidHash.slice(0, 16)

function describeSession({ clientKey, createdAt, expiresAt }: Pick<Session, 'clientKey' | 'createdAt' | 'expiresAt'>) {
  return {
    kind: clientKey === undefined ? ('cookie' as const) : ('bound' as const),
    createdAt: new Date(createdAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  }
}

export type SignerFinder = {
  /** Throws `not_authenticated`, `session_expired`, `key_binding_mismatch` or `vault_not_found`. */
  find(query: Omit<SignerQuery, 'sidHash'> & { sid: string | undefined }): Promise<Signer & { sid: string }>
}

const LIMIT = 256

/**
 * Step 1 of signing: finds the session's user and key. Requests that arrive while `slots` lookups are running share the next one. Unlike
 * signings, a lookup never joins an equal one that is already running: its result could be older than a sign-out.
 */
export function createSignerFinder(deps: {
  store: Pick<Store, 'findSigners'>
  clock: Clock
  sessionIdleMs: number
  slots: () => number
}): SignerFinder {
  const { store, clock, sessionIdleMs: idleMs, slots } = deps
  const gatherer = createGatherer<SignerQuery, Signer>({
    async run(queries, { answer }) {
      const found = await store.findSigners({ queries, now: clock.now(), idleMs })
      for (const [index, request] of queries.entries()) {
        const signer = found[index]
        if (typeof signer === 'object') answer(request, { status: 'fulfilled', value: signer })
        else answer(request, { status: 'rejected', reason: toError(signer) })
      }
    },
    limit: LIMIT,
    slots,
  })
  return {
    async find({ sid, ...query }) {
      if (sid === undefined) throw notAuthenticated()
      return { sid, ...(await gatherer.add({ sidHash: hashSid(sid), ...query })) }
    },
  }
}

function toError(found: Exclude<FoundSigner, Signer>): CoordinatorError {
  if (found === undefined) return notAuthenticated()
  if (found === 'expired') return sessionExpired()
  if (found === 'vault_not_found') return new CoordinatorError(found, 'the user has no such vault')
  return new CoordinatorError('key_binding_mismatch', 'the key does not belong to this user')
}
