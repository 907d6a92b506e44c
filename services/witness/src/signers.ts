import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { createNoteKey, type NoteKey, type NoteKeyType } from '@countersign/log'
import { fromHex, isHex, readMembers, toHex } from '@countersign/protocol'

/** A key of the witness, with its signing function. */
export type Signer = { key: NoteKey; sign(message: Uint8Array): Promise<Uint8Array> }

const signOnPool = promisify(sign)

/** The PKCS #8 prefix of a seed (RFC 8410, RFC 9881), and the length of the public key at the end of its SubjectPublicKeyInfo. */
const KINDS = {
  'cosignature-ed25519': { prefix: '302e020100300506032b657004220420', length: 32 },
  'cosignature-ml-dsa-44': { prefix: '3034020100300b060960864801650304031104228020', length: 1_312 },
} as const

/** Creates the text of a key file: the name, and a seed for each kind of cosignature. */
export function createKeyFile(name: string, random: (length: number) => Uint8Array): string {
  const file = { name, ed25519: toHex(random(32)), mlDsa44: toHex(random(32)) }
  // Rejects an invalid name before anything is written.
  readSigners(JSON.stringify(file))
  return `${JSON.stringify(file, undefined, 2)}\n`
}

/** Parses a key file. Errors don't quote the text, which is secret. */
export function readSigners(text: string): Signer[] {
  const fail = () => new Error('the key file must have exactly name, ed25519 and mlDsa44')
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    throw fail()
  }
  const { name, ed25519, mlDsa44 } = readMembers(file, { required: ['name', 'ed25519', 'mlDsa44'] }, fail)
  if (typeof name !== 'string' || !isHex(ed25519, 32) || !isHex(mlDsa44, 32)) throw fail()
  return [
    createSigner(name, 'cosignature-ed25519', fromHex(ed25519)),
    createSigner(name, 'cosignature-ml-dsa-44', fromHex(mlDsa44)),
  ]
}

function createSigner(name: string, type: keyof typeof KINDS & NoteKeyType, seed: Uint8Array): Signer {
  const { prefix, length } = KINDS[type]
  const der = Buffer.concat([fromHex(prefix), seed])
  const privateKey: KeyObject = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  const key = createNoteKey({ name, type, publicKey: new Uint8Array(spki.subarray(-length)) })
  // Ed25519 is faster than a round trip to another thread.
  if (type === 'cosignature-ed25519') return { key, sign: async (message) => sign(null, message, privateKey) }
  return { key, sign: (message) => signOnPool(null, message, privateKey) }
}
