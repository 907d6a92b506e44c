import { createPublicKey } from 'node:crypto'
import { createRequire } from 'node:module'
import { hashTree, hashTreeLeaf } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { log, origin } from '../test/logs.ts'
import { assertInclusion } from './checkProofs.ts'
import { formatCheckpoint, parseCheckpoint } from './checkpoint.ts'
import { openNote, signNote } from './openNote.ts'
import { createInclusionProof, createLeafReader } from './treeProofs.ts'

// sigstore-js has an independent reader of checkpoints and inclusion proofs. Its package doesn't export it, so the files are loaded directly.
const require = createRequire(import.meta.url)
const { verifyCheckpoint } = require('@sigstore/verify/dist/tlog/checkpoint.js')
const { verifyMerkleInclusion } = require('@sigstore/verify/dist/tlog/merkle.js')

const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), log.key.publicKey])
const trusted = [
  {
    logID: Buffer.from(log.key.id, 'hex'),
    baseURL: `https://${origin}`,
    publicKey: createPublicKey({ key: spki, format: 'der', type: 'spki' }),
  },
]

const SIZE = 23
const entries = Array.from({ length: SIZE }, (_, index) => new TextEncoder().encode(`entry ${index}`))
const leaves = entries.map(hashTreeLeaf)
const note = signNote(formatCheckpoint({ origin, size: SIZE, root: hashTree(leaves), extensions: [] }), [log])

type Case = { note: string; index: number; entry: Uint8Array; proof: readonly Uint8Array[] }

function sigstoreAccepts({ note, index, entry, proof }: Case): boolean {
  const inclusionProof = {
    checkpoint: { envelope: note },
    logIndex: String(index),
    hashes: proof.map((hash) => Buffer.from(hash)),
  }
  const tlogEntry = { inclusionProof, canonicalizedBody: Buffer.from(entry) }
  try {
    verifyMerkleInclusion(tlogEntry, verifyCheckpoint(tlogEntry, trusted))
    return true
  } catch {
    return false
  }
}

function weAccept({ note, index, entry, proof }: Case): boolean {
  try {
    const { size, root } = parseCheckpoint(openNote(note, [log.key]).text)
    assertInclusion({ leaf: hashTreeLeaf(entry), index, size, root, proof })
    return true
  } catch {
    return false
  }
}

describe('sigstore-js (@sigstore/verify)', () => {
  const right = entries.map((entry, index) => {
    const proof = createInclusionProof(createLeafReader(leaves), { index, size: SIZE })
    return { note, index, entry, proof }
  })

  test('accepts our checkpoint and the proof of every entry', () => {
    for (const one of right) expect([sigstoreAccepts(one), weAccept(one)]).toEqual([true, true])
  })

  test('rejects the same proofs as our code', () => {
    for (const one of right) {
      const [first = new Uint8Array(32), ...rest] = one.proof
      for (const wrong of [
        { ...one, index: (one.index + 1) % SIZE },
        { ...one, entry: Uint8Array.of(...one.entry, 0) },
        { ...one, proof: rest },
        { ...one, proof: [...one.proof, first] },
        { ...one, proof: [Uint8Array.from(first).fill(1, 0, 1), ...rest] },
        { ...one, note: note.replace(`\n${SIZE}\n`, `\n${SIZE + 1}\n`) },
        { ...one, note: note.replace(origin, `${origin}x`) },
        { ...one, note: note.replace(/(.{10})=\n$/, 'AAAAAAAAAA=\n') },
      ]) {
        expect([sigstoreAccepts(wrong), weAccept(wrong)]).toEqual([false, false])
      }
    }
  })
})
