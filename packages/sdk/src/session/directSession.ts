import { loadSession } from './loadSession.ts'
import type { DirectSession, DirectSessionOptions } from './session.ts'

export type { DirectSession, DirectSessionOptions, Session } from './session.ts'

/**
 * Signs in at the identity provider from the page, so the service's operator can't. The session is bound to a key of this browser, and
 * needs no cookie.
 *
 * @example
 * const session = directSession({ provider: 'app', issuer, clientId, authorizationUrl: `${issuer}/auth` })
 * const client = new ServiceClient({ apiBaseUrl, chainId, session })
 */
export function directSession(options: DirectSessionOptions): DirectSession {
  const { load, ...session } = loadSession(async () =>
    (await import('./createDirectSession.ts')).createDirectSession(options),
  )
  return { ...session, readIdentity: async (service) => (await load()).readIdentity(service) }
}
