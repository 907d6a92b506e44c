import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import { type DrandBeacon, toHex, toRoundTimeMs, toU64be, verifyDrandWitness } from '@countersign/protocol'
import { listen } from '@countersign/testing/stack'
import { bls12_381 } from '@noble/curves/bls12-381.js'
import { afterEach, expect, test } from 'vitest'
import { createFakeClock, createFakeLog } from '../ports.fake.ts'
import type { AnyWitness } from '../store/types.ts'
import { createBeaconEntropy } from './beaconEntropy.ts'
import { createDrandSource } from './drand.ts'

const { shortSignatures } = bls12_381
const { secretKey, publicKey } = shortSignatures.keygen(new Uint8Array(48).fill(1))
const beacon: DrandBeacon = {
  chainHash: 'ab'.repeat(32),
  key: toHex(publicKey.toBytes()),
  genesisS: 1_750_000_000,
  periodS: 3,
}

function createRound(round: number) {
  const message = shortSignatures.hash(hash('sha256', toU64be(round), 'buffer'))
  const signature = shortSignatures.sign(message, secretKey).toBytes()
  return { round, randomness: hash('sha256', signature, 'hex'), signature: toHex(signature) }
}

const clean: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of clean.splice(0).toReversed()) await stop()
})

/** A server that speaks as drand's relays do, and a coordinator's entropy from it. */
async function setUp() {
  const relay = { round: 1000, answer: undefined as unknown, calls: 0 }
  const server = createServer((request, response) => {
    relay.calls += 1
    if (request.url !== `/${beacon.chainHash}/public/latest`) return response.writeHead(404).end()
    if (relay.answer === 'down') return response.writeHead(503).end()
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify(relay.answer ?? createRound(relay.round)))
  })
  const { url, stop } = await listen(server)
  clean.push(stop)
  const clock = createFakeClock(toRoundTimeMs(beacon, 1000) + 100)
  const log = createFakeLog()
  const source = createDrandSource({ url, fetch, beacon })
  const entropy = createBeaconEntropy({ source, beacon, clock, maxAgeMs: 60_000, log })
  clean.push(() => entropy.stop())
  return { relay, clock, log, entropy }
}

const unavailable = expect.objectContaining({ code: 'entropy_unavailable' })
const sequences = (witnesses: readonly AnyWitness[]) => witnesses.map(({ sequence }) => sequence)

test('one verified round serves all who ask within its period, for one request', async () => {
  const { relay, entropy } = await setUp()
  const taken = (await Promise.all([entropy.take(1), entropy.take(5), entropy.take(2)])).flat()
  expect(sequences(taken)).toEqual(Array(8).fill(1000))
  for (const witness of taken) expect(verifyDrandWitness(beacon, witness as never)).toBe(true)
  expect(relay.calls).toBe(1)
  expect(await entropy.take(0)).toEqual([])
})

test('the next round is fetched when it is due, and nobody waits for it', async () => {
  const { relay, clock, entropy } = await setUp()
  await entropy.take(1)
  clock.advance(3_000)
  relay.round = 1001
  expect(sequences(await entropy.take(1))).toEqual([1000])
  await entropy.stop()
  expect(relay.calls).toBe(2)
})

test('a relay that is down does not matter while the last round is fresh enough', async () => {
  const { relay, clock, entropy } = await setUp()
  await entropy.take(1)
  relay.answer = 'down'
  clock.advance(59_000)
  expect(sequences(await entropy.take(1))).toEqual([1000])
})

test.each<[string, unknown]>([
  ['is down', 'down'],
  ['forges', { ...createRound(1001), round: 1021 }],
  ['lags', createRound(999)],
  ['talks nonsense', 'garbage'],
  ['says nothing', {}],
])('a relay that %s: no sample once the last round is too old, and one again when it recovers', async (_, answer) => {
  const { relay, clock, entropy } = await setUp()
  await entropy.take(1)
  clock.advance(62_000)
  relay.answer = answer
  await expect(entropy.take(1)).rejects.toEqual(unavailable)
  relay.answer = undefined
  relay.round = 1020
  expect(sequences(await entropy.take(1))).toEqual([1020])
})

test('a round from the future is not used', async () => {
  const { relay, entropy } = await setUp()
  relay.round = 1003
  await expect(entropy.take(1)).rejects.toEqual(unavailable)
})

test('a round that is too old from the start is not used', async () => {
  const { relay, entropy } = await setUp()
  relay.round = 900
  await expect(entropy.take(1)).rejects.toEqual(unavailable)
})

test('stopped, it refuses', async () => {
  const { entropy } = await setUp()
  await entropy.stop()
  await expect(entropy.take(1)).rejects.toMatchObject({ code: 'shutting_down' })
})
