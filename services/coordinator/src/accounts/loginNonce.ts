import { hash } from 'node:crypto'
import { concatBytes, tags, toTagBytes } from '@countersign/protocol'

/** A sign-in must be over within this time. */
export const LOGIN_TTL_MS = 600_000

/** The OpenID Connect nonce that binds an ID token to the browser that has the login secret. The enclave computes it too. */
export function toLoginNonce(loginSecret: Uint8Array): string {
  return hash('sha256', concatBytes(toTagBytes(tags.login), loginSecret), 'base64url')
}

/** How the database knows a state. */
export function hashState(state: string): string {
  return hash('sha256', state, 'hex')
}

/** Names the cookie, so that two tabs do not collide. */
export function toLoginId(stateHash: string): string {
  return stateHash.slice(0, 16)
}
