import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromHex, isRoundSigned, toHex, toU64be, verifyEd25519 } from '@countersign/protocol'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { describe, expect, test } from 'vitest'
import { checkSample } from './checkSample.ts'
import { createDrandSource, type DrandChain, quicknet } from './drand.ts'
import type { Fetch } from './fetchJson.ts'

const FIXTURE = join(import.meta.dirname, '../../../../../shared/fixtures/entropy/drand-quicknet-round-1000.json')

const { shortSignatures } = bls12_381
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()
const { secretKey, publicKey } = shortSignatures.keygen(new Uint8Array(48).fill(1))

/** A chain with a key of our own, so that rounds of any number can be made. */
const chain: DrandChain = {
  name: 'test',
  hash: 'ab'.repeat(32),
  publicKey: toHex(publicKey.toBytes()),
  genesisTimeS: 1_750_000_000,
  periodS: 3,
}

function createRound(round: number, parameters: { dst?: string } = {}) {
  const message = shortSignatures.hash(sha256(toU64be(round)), parameters.dst)
  const signature = shortSignatures.sign(message, secretKey).toBytes()
  return { round, randomness: toHex(sha256(signature)), signature: toHex(signature) }
}

const good = createRound(1000)

function createSource(answer: unknown, parameters: { chain?: DrandChain } = { chain }) {
  const urls: string[] = []
  const fetch: Fetch = async (url) => {
    urls.push(String(url))
    return Response.json(answer)
  }
  return { urls, source: createDrandSource({ url: 'https://relay.example/', fetch, ...parameters }) }
}

test('the latest round becomes one witness, whatever the count', async () => {
  const { urls, source } = createSource(good)
  expect(await source.getSamples(256)).toEqual([
    {
      source: `drand/test/${chain.hash}`,
      valueHex: good.randomness,
      signatureHex: '00'.repeat(64),
      publicKey: '00'.repeat(32),
      timestamp: new Date((1_750_000_000 + 999 * 3) * 1000).toISOString(),
      sequence: 1000,
    },
  ])
  expect(urls).toEqual([`https://relay.example/${chain.hash}/public/latest`])
})

test('a witness does not pass for a signed one: here, or with whoever verifies the receipt', async () => {
  const { source } = createSource(good)
  expect([source.name, source.isSigned]).toEqual(['drand', false])
  const [witness] = await source.getSamples(1)
  if (!witness) throw new Error('no witness')
  const options = { publicKeys: new Set<string>(), now: Date.parse(witness.timestamp), maxAgeMs: 60_000 }
  expect(checkSample(witness, { ...options, isSigned: false, allowUnsigned: false })).toBe('unsigned')
  expect(checkSample(witness, { ...options, isSigned: false, allowUnsigned: true })).toBeUndefined()
  expect(checkSample(witness, { ...options, isSigned: true, allowUnsigned: true })).toBe('foreign_key')
  // Under the all-zero key, of small order, a lax verifier would accept the all-zero signature.
  expect(verifyEd25519(fromHex(witness.publicKey), fromHex(witness.signatureHex), new Uint8Array(1))).toBe(false)
})

test('relays of the second version leave the randomness out', async () => {
  const { round, signature } = good
  expect(await createSource({ round, signature }).source.getSamples(1)).toHaveLength(1)
})

describe('a round is refused', () => {
  const infinity = toHex(bls12_381.G1.Point.ZERO.toBytes())
  test.each<[string, unknown]>([
    ['with the signature of another round', { ...createRound(1001), round: 1000 }],
    ['with one bit of its signature changed', { ...good, signature: good.signature.replace(/.$/, flipDigit) }],
    ['with a signature under another tag', createRound(1000, { dst: 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_' })],
    ['with the point at infinity', { ...good, signature: infinity }],
    ['with bytes that are no point', { ...good, signature: 'ff'.repeat(48) }],
    ['with an uncompressed flag', { ...good, signature: `0${good.signature.slice(1)}` }],
  ])('%s', async (_name, answer) => {
    await expect(createSource(answer).source.getSamples(1)).rejects.toMatchObject({ code: 'wrong_signature' })
  })

  test('of another chain', async () => {
    await expect(createSource(good, { chain: quicknet }).source.getSamples(1)).rejects.toMatchObject({
      code: 'wrong_signature',
    })
  })

  test('on a chain whose pinned key is no key', async () => {
    const broken = { ...chain, publicKey: '00'.repeat(96) }
    await expect(createSource(good, { chain: broken }).source.getSamples(1)).rejects.toMatchObject({
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
    ['that is none', []],
  ])('%s', async (_name, answer) => {
    await expect(createSource(answer).source.getSamples(1)).rejects.toMatchObject({ code: 'malformed' })
  })
})

test('a round that was verified is not believed with another signature', async () => {
  const answers: unknown[] = [good, good, { ...good, signature: createRound(1001).signature }]
  const fetch: Fetch = async () => Response.json(answers.shift())
  const source = createDrandSource({ url: 'https://relay.example', fetch, chain })
  const [first] = await source.getSamples(1)
  expect(await source.getSamples(1)).toEqual([first])
  await expect(source.getSamples(1)).rejects.toMatchObject({ code: 'wrong_signature' })
})

if (existsSync(FIXTURE)) {
  const { chainInfo, beacon } = JSON.parse(readFileSync(FIXTURE, 'utf8'))

  test('quicknet is pinned as its relays describe it', () => {
    expect(quicknet).toEqual({
      name: chainInfo.metadata.beaconID,
      hash: chainInfo.hash,
      publicKey: chainInfo.public_key,
      genesisTimeS: chainInfo.genesis_time,
      periodS: chainInfo.period,
    })
    // drand `chain/info.go`: what the chain hash is made of.
    const period = new Uint8Array(4)
    new DataView(period.buffer).setUint32(0, quicknet.periodS)
    const parts = [period, toU64be(quicknet.genesisTimeS), fromHex(quicknet.publicKey), fromHex(chainInfo.groupHash)]
    expect(toHex(sha256(Buffer.concat([...parts, Buffer.from(quicknet.name)])))).toBe(quicknet.hash)
  })

  test('a real round of quicknet verifies, and its neighbour does not', async () => {
    const [witness] = await createSource(beacon, {}).source.getSamples(1)
    expect(witness).toMatchObject({
      source: `drand/quicknet/${quicknet.hash}`,
      valueHex: beacon.randomness,
      sequence: 1000,
      timestamp: '2023-08-23T15:59:24.000Z',
    })
    expect(isRoundSigned({ ...beacon, publicKey: quicknet.publicKey, round: 1001 })).toBe(false)
  })
} else {
  console.log('drand was not tested on a real round: the fixtures are not there')
}

function flipDigit(digit: string): string {
  return digit === '0' ? '1' : '0'
}
