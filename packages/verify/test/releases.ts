import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createNoteKey, formatCheckpoint, parseNote, signNote, toVkey } from '@countersign/log'
import { hashTree, hashTreeLeaf, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { readAppCompose } from '../src/source/readAppCompose.ts'
import { formatReleaseRecord, type ReleaseRecord } from '../src/source/releaseRecord.ts'

/** The file of this repository, which a service copies. */
export const appCompose = readFileSync(join(import.meta.dirname, '../../../deploy/dstack/app-compose.json'), 'utf8')

export const hashText = (text: string): string => toHex(sha256(new TextEncoder().encode(text)))

/** Changes the text of the Compose file in app-compose.json. */
export function changeCompose(change: (text: string) => string): string {
  const value = JSON.parse(appCompose)
  return JSON.stringify({ ...value, docker_compose_file: change(value.docker_compose_file) })
}

export function createRecord(changes: Partial<ReleaseRecord> = {}): Uint8Array<ArrayBuffer> {
  return formatReleaseRecord({
    release: '0.2.0',
    commit: 'c0'.repeat(20),
    tree: '7e'.repeat(20),
    recordedAt: '2026-12-01T12:00:00.000Z',
    images: [{ name: 'enclave', digest: `sha256:${'0'.repeat(64)}`, files: 'f1'.repeat(32) }],
    verifiers: [{ name: 'countersign-verify.mjs', bytes: 1_000_000, sha256: 'e5'.repeat(32) }],
    compose: readAppCompose(new TextEncoder().encode(appCompose)).template,
    ...changes,
  })
}

/** A key with a name, and its signature below a checkpoint. */
export function createSigner(name: string, type: 'ed25519' | 'cosignature-ed25519' = 'ed25519') {
  const secret = sha256(new TextEncoder().encode(name))
  const publicKey = ed25519.getPublicKey(secret)
  const key = createNoteKey({ name, type, publicKey })
  const time = type === 'ed25519' ? {} : { timestampS: 1_800_000_000 }
  return {
    vkey: toVkey(key),
    hex: toHex(publicKey),
    signer: { key, sign: (message: Uint8Array) => ed25519.sign(message, secret), ...time },
  }
}

export const releaseSigner = createSigner('countersign/releases')
export const releaseWitness = createSigner('witness.example/w1', 'cosignature-ed25519')

/** The files of a log with these records, signed by its key and others. */
export function createReleaseFiles(
  records: readonly Uint8Array[],
  signers = [releaseSigner, releaseWitness],
): Map<string, Uint8Array> {
  const root = hashTree(records.map(hashTreeLeaf))
  const text = formatCheckpoint({ origin: 'countersign/releases', size: records.length, root, extensions: [] })
  const note = signNote(
    text,
    signers.map(({ signer }) => signer),
  )
  parseNote(note)
  return new Map([
    ...records.map((record, index) => [`${String(index).padStart(4, '0')}.json`, record] as const),
    ['checkpoint', new TextEncoder().encode(note)],
    ['key', new TextEncoder().encode(`${signers[0]?.vkey}\n`)],
  ])
}
