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
 * Turns an ID token into a session. The user's identity comes from the token, verified here, and never from the coordinator. The session
 * secret is fresh, so nothing known before sign-in is valid after it.
 */
export async function openSession(deps: OpenSessionDeps, request: OpenSessionRequest): Promise<OpenSessionResponse> {
  const { issuedAt, ...identity } = await deps.idTokens.verify({
    idToken: request.idToken,
    loginSecret: new Uint8Array(Buffer.from(request.loginSecret, 'hex')),
  })
  // Counted from the token's time: a host that sets the clock ahead only during sign-in would otherwise get longer sessions.
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
