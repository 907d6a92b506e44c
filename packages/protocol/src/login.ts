import { sha256 } from '@noble/hashes/sha2.js'
import { fromHex, type Hex, toHex } from './hex.ts'
import * as preimages from './preimages.ts'
import { toPreimage } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** An uncompressed P-256 point, in hex. */
export const CLIENT_KEY_BYTES = 65

/**
 * The hash whose base64url is the OpenID Connect nonce. The identity provider signs it, so it binds an ID token to the browser with this
 * login secret, and to the key of that browser if the session has one.
 */
export function hashLogin({
  loginSecret,
  clientKey,
}: {
  loginSecret: Uint8Array
  clientKey?: string | undefined
}): Bytes {
  if (clientKey === undefined) return sha256(toPreimage(preimages.login, { loginSecret }))
  const fields = { loginSecretHash: sha256(loginSecret), clientKey: fromHex(clientKey) }
  return sha256(toPreimage(preimages.loginV2, fields))
}

/** How a statement about an address names the session of a client key. */
export function toSessionName({ clientKey, address }: { clientKey: string; address: Hex }): string {
  const fields = { clientKey: fromHex(clientKey), address: fromHex(address.slice(2)) }
  return toHex(sha256(toPreimage(preimages.session, fields)).subarray(0, 16))
}
