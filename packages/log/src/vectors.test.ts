import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fromHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createVectors, toVectorFile } from '../vectors/createVectors.ts'
import { assertLogged, parseVkey } from './index.ts'
import { withCode } from './withCode.fake.ts'

const file = readFileSync(new URL('../vectors/log-v1.vectors.json', import.meta.url), 'utf8')
const vectors = JSON.parse(file) as ReturnType<typeof createVectors>

test('the file is what the script makes, to the byte', () => {
  expect(file).toBe(toVectorFile(createVectors()))
})

test('every entry is in the log, and under no proof but its own', () => {
  const trust = { log: parseVkey(vectors.log), policy: vectors.policy }
  for (const [index, { logLeaf }] of vectors.entries.entries()) {
    for (const [at, proof] of vectors.proofs.entries()) {
      const judge = () => assertLogged(proof, { leaf: fromHex(logLeaf), ...trust })
      if (at === index) expect(judge().index).toBe(index)
      else expect(judge).toThrow(withCode('inclusion_invalid'))
    }
  }
})

// From here on the file is held against node:crypto, not against the code that made it.

const sha256 = (...parts: (Uint8Array | string)[]) =>
  createHash('sha256')
    .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    .digest()
const one = Uint8Array.of(1)

function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0] as Buffer
  let k = 1
  while (2 * k < leaves.length) k *= 2
  return sha256(one, rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)))
}

test('leaves are SHA-256 of a zero byte and the entry, roots those of RFC 6962, signatures Ed25519 over the text', () => {
  const leaves = vectors.entries.map(({ bytes }) => sha256(Uint8Array.of(0), Buffer.from(bytes, 'hex')))
  expect(leaves.map((leaf) => leaf.toString('hex'))).toEqual(vectors.entries.map(({ logLeaf }) => logLeaf))
  const publicKey = Buffer.from(vectors.log.split('+').slice(2).join('+'), 'base64').subarray(1)
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicKey])
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  for (const { size, root, note } of vectors.checkpoints) {
    expect(root).toBe(rootOf(leaves.slice(0, size)).toString('hex'))
    const [text = '', line = ''] = note.split('\n\n')
    expect(text).toBe(`log.example/enclave-a\n${size}\n${Buffer.from(root, 'hex').toString('base64')}`)
    const signature = Buffer.from(line.trim().split(' ')[2] ?? '', 'base64').subarray(4)
    expect(verify(null, Buffer.from(`${text}\n`), key, signature)).toBe(true)
  }
})
