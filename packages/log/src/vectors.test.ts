import { createHash, createHmac, createPrivateKey, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fromHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { createVectors, toVectorFile } from '../vectors/createVectors.ts'
import { assertLogged, openWitnessStatement, parseCheckpoint, parseNote, parseVkey } from './index.ts'

const file = readFileSync(new URL('../vectors/log-v1.vectors.json', import.meta.url), 'utf8')
const vectors = JSON.parse(file) as ReturnType<typeof createVectors>

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toVectorFile(createVectors()))
})

test('every entry is in the log, with no other entry’s proof', () => {
  const trust = { log: parseVkey(vectors.log), policy: vectors.policy }
  for (const [index, { logLeaf }] of vectors.entries.entries()) {
    for (const [at, proof] of vectors.proofs.entries()) {
      const runCheck = () => assertLogged(proof, { leaf: fromHex(logLeaf), ...trust })
      if (at === index) expect(runCheck().index).toBe(index)
      else expect(runCheck).toThrow(withCode('inclusion_invalid'))
    }
  }
})

describe('statements of witnesses', () => {
  const { question, accepted, refused } = vectors.statements
  const { origin, nonce, timestampS } = question
  const { witnesses } = vectors.policy
  const open = (statement: string, now = new Date(timestampS * 1000)) =>
    openWitnessStatement(new TextEncoder().encode(statement), { origin, nonce, witnesses, now })

  test('are accepted from a clock that is up to five minutes off', () => {
    for (const { statement, size } of accepted) {
      expect(open(statement)).toMatchObject({ witness: witnesses[0] })
      expect(open(statement).known?.size ?? null).toBe(size)
      for (const skewMs of [-300_000, 300_000]) open(statement, new Date(timestampS * 1000 + skewMs))
    }
  })

  test.each(refused)('are rejected: $name', ({ statement, code }) => {
    expect(() => open(statement)).toThrow(withCode(code))
  })

  test('have a separate signature domain from checkpoints, notes and cosignatures', () => {
    for (const [at, message] of vectors.statements.messages.entries()) {
      const tag = Buffer.from('countersign/witness-statement/v1\0').toString('hex')
      expect(message.startsWith(tag)).toBe(true)
      const { signature, ...rest } = JSON.parse(accepted[at]?.statement ?? '') as Record<string, unknown>
      expect(JSON.parse(Buffer.from(message.slice(tag.length), 'hex').toString())).toEqual(rest)
      expect(
        verify(null, Buffer.from(message, 'hex'), toKey(witnesses[0] ?? ''), Buffer.from(`${signature}`, 'hex')),
      ).toBe(true)
      expect(() => parseCheckpoint(Buffer.from(message, 'hex').toString())).toThrow(withCode('checkpoint_malformed'))
      expect(() => parseNote(Buffer.from(message, 'hex').toString())).toThrow(withCode('note_malformed'))
    }
  })
})

// From here on, node:crypto checks the file, not the code that wrote it.

const sha256 = (...parts: (Uint8Array | string)[]) =>
  createHash('sha256')
    .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    .digest()
const one = Uint8Array.of(1)

function toKey(publicKey: string) {
  const spki = Buffer.from(`302a300506032b6570032100${publicKey}`, 'hex')
  return createPublicKey({ key: spki, format: 'der', type: 'spki' })
}

function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0] as Buffer
  let k = 1
  while (2 * k < leaves.length) k *= 2
  return sha256(one, rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)))
}

test('leaves are SHA-256 of a zero byte and the entry, roots follow RFC 6962, signatures are Ed25519 over the text', () => {
  const leaves = vectors.entries.map(({ bytes }) => sha256(Uint8Array.of(0), Buffer.from(bytes, 'hex')))
  expect(leaves.map((leaf) => leaf.toString('hex'))).toEqual(vectors.entries.map(({ logLeaf }) => logLeaf))
  const key = toKey(Buffer.from(vectors.log.split('+').slice(2).join('+'), 'base64').subarray(1).toString('hex'))
  for (const { size, root, note } of vectors.checkpoints) {
    expect(root).toBe(rootOf(leaves.slice(0, size)).toString('hex'))
    const [text = '', line = ''] = note.split('\n\n')
    expect(text).toBe(`log.example/enclave-a\n${size}\n${Buffer.from(root, 'hex').toString('base64')}`)
    const signature = Buffer.from(line.trim().split(' ')[2] ?? '', 'base64').subarray(4)
    expect(verify(null, Buffer.from(`${text}\n`), key, signature)).toBe(true)
  }
})

test('a log’s key is HKDF over tag, zero and origin, and its name is the origin', () => {
  const hmac = (key: Uint8Array, ...parts: Uint8Array[]) =>
    createHmac('sha256', key).update(Buffer.concat(parts)).digest()
  for (const { rootSecret, origin, info, seed, vkey } of vectors.derivedKeys) {
    expect(info).toBe(Buffer.from(`countersign/log/v1b\0${origin}`).toString('hex'))
    // RFC 5869 with an empty salt: zeros in the length of the hash.
    const extracted = hmac(new Uint8Array(32), Buffer.from(rootSecret, 'hex'))
    expect(seed).toBe(hmac(extracted, Buffer.from(info, 'hex'), one).toString('hex'))
    const der = Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex')
    const spki = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
    const publicKey = spki.export({ format: 'der', type: 'spki' }).subarray(-32)
    expect(parseVkey(vkey)).toMatchObject({ name: origin, type: 'ed25519', publicKey: new Uint8Array(publicKey) })
  }
  expect(new Set(vectors.derivedKeys.map(({ vkey }) => vkey)).size).toBe(3)
})
