import { createPrivateKey, sign } from 'node:crypto'
import type { Clock } from '../system.ts'

/** The key that Apple gave the team, and its names. */
export type AppleKey = { teamId: string; keyId: string /** PKCS #8, PEM. */; privateKey: string }

/** One exchange needs it for seconds; Apple accepts up to six months. */
const TTL_S = 300

/**
 * The client secret that Apple takes: a JWT, signed with the team's key (Apple, "Creating a client secret"). Each exchange
 * makes its own, so that none is kept and none expires.
 */
export function createAppleSecret(
  { teamId, keyId, privateKey }: AppleKey,
  clientId: string,
  clock: Clock,
): () => string {
  const key = parseAppleKey(privateKey)
  return () => {
    const iat = Math.floor(clock.now() / 1000)
    const header = { alg: 'ES256', kid: keyId }
    const claims = { iss: teamId, iat, exp: iat + TTL_S, aud: 'https://appleid.apple.com', sub: clientId }
    const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
    return `${text}.${signature.toString('base64url')}`
  }
}

/** Throws where it is not a private key on P-256, without quoting it. */
export function parseAppleKey(pem: string) {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
  } catch {
    // The reason could quote the key.
  }
  throw new Error('not a private key on P-256')
}
