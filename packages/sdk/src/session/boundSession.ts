import { type EndpointResponse, okResponse, sessionList } from '@countersign/protocol'
import { createCall } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import { loadSession } from './loadSession.ts'
import type { BoundSessionOptions, Session } from './session.ts'

export type { ClientKey } from './keyStore.ts'
export type { BoundSessionOptions, Session } from './session.ts'

/**
 * Binds sessions to a key of this browser: a sign-in names its public key, and the enclave signs nothing without a signature of it. A copy of
 * the cookie is then useless. The key is deleted at sign-out.
 *
 * @example
 * const client = new ServiceClient({ apiBaseUrl, chainId, session: boundSession() })
 */
export function boundSession(options: BoundSessionOptions = {}): Session {
  return loadSession(async () => (await import('./createBoundSession.ts')).createBoundSession(options))
}

/** An open session of the user. */
export type OpenSession = EndpointResponse<'GET /auth/sessions'>['sessions'][number]

/**
 * The user's open sessions on all devices.
 *
 * @example
 * const sessions = await listSessions(client)
 */
export async function listSessions({ config }: Pick<Connection, 'config'>): Promise<readonly OpenSession[]> {
  return (await createCall(config)('GET /auth/sessions', sessionList)).sessions
}

/**
 * Ends one session, or all of the user's sessions. To end only this one, use `client.api.logout`.
 *
 * @example
 * await endSessions(client, { all: true })
 */
export async function endSessions(
  client: Pick<Connection, 'config'>,
  which: { session: OpenSession['id'] } | { all: true },
): Promise<void> {
  // Ending the own session deletes its key, too.
  const isOwn =
    'session' in which && (await listSessions(client)).some(({ id, isCurrent }) => isCurrent && id === which.session)
  await createCall(client.config)('POST /auth/logout', okResponse, isOwn ? {} : { body: which })
}
