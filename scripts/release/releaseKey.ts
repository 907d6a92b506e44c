import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createNoteKey, type NoteKey } from '@countersign/log'

/** The name of the log and its key. It has no dot, so it claims no domain. */
const ORIGIN = 'countersign/releases'

export type ReleaseKey = { key: NoteKey; sign(message: Uint8Array): Uint8Array }

/** Creates the secret key of a log of releases (Ed25519, PKCS #8 in PEM). Doesn't replace a file. */
export function createReleaseKey(path: string): ReleaseKey {
  const { privateKey } = generateKeyPairSync('ed25519')
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { flag: 'wx', mode: 0o600 })
  return readReleaseKey(path)
}

export function readReleaseKey(path: string): ReleaseKey {
  const secret = createPrivateKey(readFileSync(path))
  const { kty, crv, x = '' } = createPublicKey(secret).export({ format: 'jwk' })
  if (kty !== 'OKP' || crv !== 'Ed25519') throw new Error(`${path} has no Ed25519 key`)
  const key = createNoteKey({ name: ORIGIN, type: 'ed25519', publicKey: Buffer.from(x, 'base64url') })
  return { key, sign: (message) => sign(null, message, secret) }
}
