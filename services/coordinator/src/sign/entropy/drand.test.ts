import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSimulatedBeacon } from '@countersign/attestation/simulator'
import {
  type DrandBeacon,
  fromHex,
  isDrandWitness,
  quicknet,
  toHex,
  toU64be,
  verifyDrandWitness,
} from '@countersign/protocol'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { describe, expect, test } from 'vitest'
import { createDrandSource } from './drand.ts'
import type { Fetch } from './fetchJson.ts'

const FIXTURE = join(import.meta.dirname, '../../../../../../shared/fixtures/entropy/drand-quicknet-round-1000.json')

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()
const { beacon: chain, signRound } = createSimulatedBeacon()

function createRound(round: number, tag?: string) {
  const signature = signRound(round, tag)
  return { round, randomness: toHex(sha256(fromHex(signature))), signature }
}

const good = createRound(1000)

function createSource(answer: unknown, beacon: DrandBeacon = chain) {
  const urls: string[] = []
  const fetch: Fetch = async (url) => {
    urls.push(String(url))
    return Response.json(answer)
  }
  return { urls, source: createDrandSource({ url: 'https://relay.example/', fetch, beacon }) }
}

test('the latest round becomes a witness that every verifier can check', async () => {
  const { urls, source } = createSource(good)
  const witness = await source.getRound()
  expect(witness).toEqual({
    kind: 'drand',
    source: `drand/${chain.chainHash}`,
    chainHash: chain.chainHash,
    valueHex: good.randomness,
    signatureHex: good.signature,
    publicKey: chain.key,
    timestamp: new Date((chain.genesisS + 999 * 3) * 1000).toISOString(),
    sequence: 1000,
  })
  expect([isDrandWitness(witness), verifyDrandWitness(chain, witness)]).toEqual([true, true])
  expect(urls).toEqual([`https://relay.example/${chain.chainHash}/public/latest`])
})

test('accepts relays of version 2, which omit the randomness', async () => {
  const { round, signature } = good
  expect(await createSource({ round, signature }).source.getRound()).toMatchObject({ sequence: round })
})

describe('rejects a round', () => {
  const infinity = toHex(bls12_381.G1.Point.ZERO.toBytes())
  test.each<[string, unknown]>([
    ['with the signature of another round', { ...createRound(1001), round: 1000 }],
    ['with one bit of its signature changed', { ...good, signature: good.signature.replace(/.$/, flipDigit) }],
    ['with a signature under another tag', createRound(1000, 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_')],
    ['with the point at infinity', { ...good, signature: infinity }],
    ['with bytes that are no point', { ...good, signature: 'ff'.repeat(48) }],
    ['with an uncompressed flag', { ...good, signature: `0${good.signature.slice(1)}` }],
  ])('%s', async (_name, answer) => {
    await expect(createSource(answer).source.getRound()).rejects.toMatchObject({ code: 'wrong_signature' })
  })

  test('of another chain', async () => {
    await expect(createSource(good, quicknet).source.getRound()).rejects.toMatchObject({
      code: 'wrong_signature',
    })
  })

  test('on a chain with an invalid pinned key', async () => {
    const broken = { ...chain, key: '00'.repeat(96) }
    await expect(createSource(good, broken).source.getRound()).rejects.toMatchObject({
      code: 'wrong_signature',
    })
  })

  test.each<[string, unknown]>([
    ['whose randomness is not the hash of its signature', { ...good, randomness: '00'.repeat(32) }],
    ['numbered 0', { ...good, round: 0 }],
    ['numbered as text', { ...good, round: '1000' }],
    ['numbered beyond exact numbers', { ...good, round: 2 ** 53 }],
    ['due beyond the calendar', createRound(2 ** 52)],
    ['in upper case', { ...good, signature: good.signature.toUpperCase() }],
    ['with a signature in G2', { ...good, signature: '80'.repeat(96) }],
    ['that is not an object', []],
  ])('%s', async (_name, answer) => {
    await expect(createSource(answer).source.getRound()).rejects.toMatchObject({ code: 'malformed' })
  })
})

test('does not accept a verified round with another signature', async () => {
  const answers: unknown[] = [good, good, { ...good, signature: createRound(1001).signature }]
  const fetch: Fetch = async () => Response.json(answers.shift())
  const source = createDrandSource({ url: 'https://relay.example', fetch, beacon: chain })
  const first = await source.getRound()
  expect(await source.getRound()).toEqual(first)
  await expect(source.getRound()).rejects.toMatchObject({ code: 'wrong_signature' })
})

if (existsSync(FIXTURE)) {
  const { chainInfo, beacon } = JSON.parse(readFileSync(FIXTURE, 'utf8'))

  test('the pinned quicknet matches its relays', () => {
    expect(quicknet).toEqual({
      chainHash: chainInfo.hash,
      key: chainInfo.public_key,
      genesisS: chainInfo.genesis_time,
      periodS: chainInfo.period,
    })
    // drand `chain/info.go`: the preimage of the chain hash.
    const period = new Uint8Array(4)
    new DataView(period.buffer).setUint32(0, quicknet.periodS)
    const parts = [period, toU64be(quicknet.genesisS), fromHex(quicknet.key), fromHex(chainInfo.groupHash)]
    expect(toHex(sha256(Buffer.concat([...parts, Buffer.from(chainInfo.metadata.beaconID)])))).toBe(quicknet.chainHash)
  })

  test('a real round of quicknet verifies, and a neighbour does not', async () => {
    expect(await createSource(beacon, quicknet).source.getRound()).toMatchObject({
      valueHex: beacon.randomness,
      sequence: 1000,
      timestamp: '2023-08-23T15:59:24.000Z',
    })
    await expect(createSource({ ...beacon, round: 1001 }, quicknet).source.getRound()).rejects.toMatchObject({
      code: 'wrong_signature',
    })
  })
} else {
  console.log('drand was not tested on a real round: the fixtures are not there')
}

function flipDigit(digit: string): string {
  return digit === '0' ? '1' : '0'
}
