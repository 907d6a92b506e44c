import { fromHex, isHex, toHex } from '@countersign/protocol'
import { createError } from '../client/errors.ts'

/** The key of a program that pays from a vault. */
export type AgentKey = {
  /** Secret: 32 bytes in hex. */
  key: string
  /** 32 bytes in hex, for an approver `{ type: 'key', publicKey }` of a policy. */
  publicKey: string
}

/** RFC 8410 §7: the bytes of a PKCS #8 key before the secret. */
const PKCS8 = '302e020100300506032b657004220420'

/**
 * Creates an Ed25519 key pair for an agent.
 *
 * @example
 * const { key, publicKey } = await createAgentKey()
 */
export async function createAgentKey(): Promise<AgentKey> {
  const key = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const { publicKey } = await importAgentKey(key)
  return { key, publicKey }
}

/** Throws `invalid_request` unless the key is 32 bytes in hex. */
export async function importAgentKey(key: string): Promise<{ privateKey: CryptoKey; publicKey: string }> {
  // Without the value, because errors may be logged.
  if (!isHex(key, 32)) throw createError('invalid_request', 'the agent’s key is not 32 bytes of lower-case hex')
  const privateKey = await crypto.subtle.importKey('pkcs8', fromHex(PKCS8 + key), 'Ed25519', true, ['sign'])
  // WebCrypto shows the public key of a private one only in this form.
  const { x = '' } = await crypto.subtle.exportKey('jwk', privateKey)
  const text = atob(x.replaceAll('-', '+').replaceAll('_', '/'))
  return { privateKey, publicKey: toHex(Uint8Array.from(text, (char) => char.charCodeAt(0))) }
}
