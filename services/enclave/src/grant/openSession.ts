import type { OpenSessionRequest, OpenSessionResponse } from '@countersign/protocol/core'
import { toOwner } from '../keys/deriveKey.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Clock, IdTokenVerifier, Random } from '../ports.ts'
import { toSidHash } from './grant.ts'
import { idTokenInvalid } from './idTokenError.ts'

export type OpenSessionDeps = {
  idTokens: IdTokenVerifier
  keyWorker: KeyWorker
  time: Clock
  random: Random
  sessionTtlMs: number
}

/**
 * Turns an ID token into a session: who the user is comes from the token, checked here, never from the coordinator. The session
 * secret is fresh, so nothing known before sign-in is valid after it.
 */
export async function openSession(deps: OpenSessionDeps, request: OpenSessionRequest): Promise<OpenSessionResponse> {
  const { issuedAt, ...identity } = await deps.idTokens.verify({
    idToken: request.idToken,
    loginSecret: new Uint8Array(Buffer.from(request.loginSecret, 'hex')),
  })
  // Not from now on: a host that sets the clock ahead for the sign-in alone would have sessions that last longer.
  const exp = issuedAt + deps.sessionTtlMs
  if (exp <= deps.time.now()) throw idTokenInvalid('iat')
  const sid = Buffer.from(deps.random(32)).toString('hex')
  const { grant, keyId, address } = await deps.keyWorker.openGrant({
    owner: toOwner(identity),
    sidHash: toSidHash(sid),
    exp,
  })
  return { sid, grant, keyId, address, expiresAt: new Date(exp).toISOString() }
}
