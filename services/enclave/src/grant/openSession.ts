import type { EnclaveSettings, OpenSessionRequest, OpenSessionResponse } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import { toOwner } from '../keys/deriveKey.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Clock, IdTokenVerifier, Random } from '../ports.ts'
import { isP256Key } from '../vault/es256.ts'
import { toSidHash } from './grant.ts'
import { idTokenInvalid } from './idTokenError.ts'

export type OpenSessionDeps = {
  idTokens: IdTokenVerifier
  keyWorker: KeyWorker
  time: Clock
  random: Random
  sessionTtlMs: number
  settings: Pick<EnclaveSettings, 'sessions'>
}

/**
 * Turns an ID token into a session. The user's identity comes from the token, verified here, and never from the coordinator. The session
 * secret is fresh, so nothing known before sign-in is valid after it.
 */
export async function openSession(deps: OpenSessionDeps, request: OpenSessionRequest): Promise<OpenSessionResponse> {
  const { clientKey } = request
  if (clientKey === undefined && deps.settings.sessions === 'bound') {
    throw new EnclaveError('session_not_bound', 'expected a client key')
  }
  if (clientKey !== undefined && !isP256Key(Buffer.from(clientKey, 'hex'))) {
    throw new EnclaveError('invalid_request', 'the client key is not on P-256')
  }
  const { issuedAt, ...identity } = await deps.idTokens.verify({
    idToken: request.idToken,
    loginSecret: new Uint8Array(Buffer.from(request.loginSecret, 'hex')),
    clientKey,
  })
  // Counted from the token's time: a host that sets the clock ahead only during sign-in would otherwise get longer sessions.
  const exp = issuedAt + deps.sessionTtlMs
  if (exp <= deps.time.now()) throw idTokenInvalid('iat')
  const sid = Buffer.from(deps.random(32)).toString('hex')
  const granted = await deps.keyWorker.openGrant({
    owner: toOwner(identity),
    identity,
    clientKey: clientKey ?? null,
    sidHash: toSidHash(sid),
    exp,
  })
  return { sid, ...granted, expiresAt: new Date(exp).toISOString() }
}
