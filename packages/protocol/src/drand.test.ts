import { bls12_381 } from '@noble/curves/bls12-381.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { expect, test } from 'vitest'
import { type DrandBeacon, type DrandWitness, isDrandWitness, isRoundSigned, verifyDrandWitness } from './drand.ts'
import { toU64be } from './fields.ts'
import { toHex } from './hex.ts'

const { shortSignatures } = bls12_381
const { secretKey, publicKey } = shortSignatures.keygen(new Uint8Array(48).fill(1))
const beacon: DrandBeacon = {
  key: toHex(publicKey.toBytes()),
  chainHash: 'ab'.repeat(32),
  genesisS: 1_750_000_000,
  periodS: 3,
}

function createWitness(round: number, dst?: string): DrandWitness {
  const signature = shortSignatures.sign(shortSignatures.hash(sha256(toU64be(round)), dst), secretKey).toBytes()
  return {
    kind: 'drand',
    source: 'drand/test',
    chainHash: beacon.chainHash,
    valueHex: toHex(sha256(signature)),
    signatureHex: toHex(signature),
    publicKey: beacon.key,
    timestamp: new Date((beacon.genesisS + (round - 1) * beacon.periodS) * 1000).toISOString(),
    sequence: round,
  }
}

const witness = createWitness(1000)

test('verifies round 1,000 of quicknet', () => {
  const signed = {
    publicKey:
      '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a',
    round: 1000,
    signature: 'b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39',
  }
  expect(isRoundSigned(signed)).toBe(true)
  expect(isRoundSigned({ ...signed, round: 1001 })).toBe(false)
})

test('accepts a round of the beacon; round 1 is due at the genesis', () => {
  expect(verifyDrandWitness(beacon, witness)).toBe(true)
  const first = createWitness(1)
  expect(first.timestamp).toBe('2025-06-15T15:06:40.000Z')
  expect(verifyDrandWitness(beacon, first)).toBe(true)
})

const next = createWitness(1001)
test.each<[string, Partial<DrandWitness>]>([
  ['another round', { sequence: 1001 }],
  ['another time', { timestamp: next.timestamp }],
  ['another value', { valueHex: next.valueHex }],
  ['another signature', { signatureHex: next.signatureHex }],
  ['another signature with its value', { signatureHex: next.signatureHex, valueHex: next.valueHex }],
  ['another round with its time', { sequence: 1001, timestamp: next.timestamp }],
  ['another chain', { chainHash: 'cd'.repeat(32) }],
  ['another key', { publicKey: toHex(shortSignatures.keygen(new Uint8Array(48).fill(2)).publicKey.toBytes()) }],
  ['a signature for another use of the key', createWitness(1000, 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_')],
  ['round 0', { sequence: 0 }],
  ['the point at infinity', { signatureHex: `c0${'00'.repeat(47)}` }],
])('%s is refused', (_, change) => {
  expect(verifyDrandWitness(beacon, { ...witness, ...change })).toBe(false)
})

test('rejects the key at infinity, which any signature at infinity would fit', () => {
  const infinite = { ...beacon, key: `c0${'00'.repeat(95)}` }
  const signatureHex = `c0${'00'.repeat(47)}`
  const forged = { ...witness, publicKey: infinite.key, signatureHex }
  expect(verifyDrandWitness(infinite, forged)).toBe(false)
})

test('accepts a sample with exactly its members, each in its form', () => {
  expect(isDrandWitness(witness)).toBe(true)
  const { chainHash: _, ...less } = witness
  const wrong = [null, [], less, { ...witness, more: 1 }, { ...witness, kind: 'satellite' }, { ...witness, source: '' }]
  const members = [
    { valueHex: '11' },
    { signatureHex: '22'.repeat(64) },
    { publicKey: 'AA'.repeat(96) },
    { timestamp: 'x' },
  ]
  const numbers = [0, -1, 0.5, 2 ** 53, '1'].map((sequence) => ({ sequence }))
  for (const value of [...wrong, ...[...members, ...numbers].map((change) => ({ ...witness, ...change }))]) {
    expect(isDrandWitness(value)).toBe(false)
  }
})
