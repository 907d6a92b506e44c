import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { hashTree, hashTreeLeaf } from '@countersign/protocol'
import { emptyRoot, formatCheckpoint } from '../src/checkpoint.ts'
import { createNoteKey, type NoteKey, type NoteKeyType } from '../src/noteKey.ts'
import { signNote } from '../src/openNote.ts'

/* Logs and witnesses with secrets that are hashes of their names. Signed by node:crypto, not by the tested code. */

export type Signer = { key: NoteKey; sign(message: Uint8Array): Uint8Array }

export const hash = (text: string) => Uint8Array.from(createHash('sha256').update(text).digest())

/** A signer by its seed; by default the hash of its name. */
export function createSigner(name: string, type: NoteKeyType = 'ed25519', seed = hash(name)): Signer {
  const isMlDsa = type === 'cosignature-ml-dsa-44'
  // PKCS #8 around a seed: RFC 8410, and RFC 9881 for ML-DSA-44.
  const prefix = isMlDsa ? '3034020100300b060960864801650304031104228020' : SEED_OF_ED25519
  const privateKey = createPrivateKey({
    key: Buffer.concat([Buffer.from(prefix, 'hex'), seed]),
    format: 'der',
    type: 'pkcs8',
  })
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  const publicKey = Uint8Array.from(spki.subarray(isMlDsa ? -1_312 : -32))
  return {
    key: createNoteKey({ name, type, publicKey }),
    sign: (message) => Uint8Array.from(sign(null, message, privateKey)),
  }
}

const SEED_OF_ED25519 = '302e020100300506032b657004220420'

export const origin = 'log.example/enclave-a'
export const log = createSigner(origin)
export const witnesses = ['w1', 'w2', 'w3'].map((name) => createSigner(`${name}.example`, 'cosignature-ed25519'))
export const TIME_S = 1_800_000_000

export const leaves = (size: number, history = '') =>
  Array.from({ length: size }, (_, index) => hashTreeLeaf(new TextEncoder().encode(`${history}${index}`)))

/** The checkpoint's text for a history. */
export function toText(size: number, history = ''): string {
  const root = size === 0 ? emptyRoot : hashTree(leaves(size, history))
  return formatCheckpoint({ origin, size, root, extensions: [] })
}

/** The same, signed by the log and these witnesses. */
export function toCosigned(text: string, cosigners: readonly Signer[] = [], timestampS = TIME_S): string {
  return signNote(text, [log, ...cosigners.map((signer) => ({ ...signer, timestampS }))])
}
