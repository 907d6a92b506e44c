import { createSimulatedBeacon } from '@countersign/attestation/simulator'
import { type AnyWitness, toRoundTimeMs, verifyDrandWitness } from '@countersign/protocol'
import { startDrandRelay } from '@countersign/testing/stack'
import { afterEach, expect, test } from 'vitest'
import { createFakeClock, createFakeLog } from '../../../test/ports.ts'
import { createBeaconEntropy } from './beaconEntropy.ts'
import { createDrandSource } from './drand.ts'

const simulated = createSimulatedBeacon()
const { beacon, signRound } = simulated
const createRound = (round: number) => ({ round, signature: signRound(round) })

const clean: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of clean.splice(0).toReversed()) await stop()
})

/** A relay, and a coordinator's entropy from it. */
async function setUp() {
  const state = { round: 1000 }
  const relay = await startDrandRelay(simulated, { now: () => toRoundTimeMs(beacon, state.round) })
  clean.push(relay.stop)
  const clock = createFakeClock(toRoundTimeMs(beacon, 1000) + 100)
  const log = createFakeLog()
  const source = createDrandSource({ url: relay.url, fetch, beacon })
  const entropy = createBeaconEntropy({ source, beacon, clock, maxAgeMs: 60_000, log })
  clean.push(() => entropy.stop())
  return { relay, state, clock, log, entropy }
}

const unavailable = expect.objectContaining({ code: 'entropy_unavailable' })
const sequences = (witnesses: readonly AnyWitness[]) => witnesses.map(({ sequence }) => sequence)

test('one request and one verified round serve all callers of its period', async () => {
  const { relay, entropy } = await setUp()
  const taken = (await Promise.all([entropy.take(1), entropy.take(5), entropy.take(2)])).flat()
  expect(sequences(taken)).toEqual(Array(8).fill(1000))
  for (const witness of taken) expect(verifyDrandWitness(beacon, witness as never)).toBe(true)
  expect(relay.requests).toBe(1)
  expect(await entropy.take(0)).toEqual([])
})

test('fetches the next round when it is due, without delaying callers', async () => {
  const { relay, state, clock, entropy } = await setUp()
  await entropy.take(1)
  clock.advance(3_000)
  state.round = 1001
  expect(sequences(await entropy.take(1))).toEqual([1000])
  await entropy.stop()
  expect(relay.requests).toBe(2)
})

test('does not need the relay while the last round is fresh enough', async () => {
  const { relay, clock, entropy } = await setUp()
  await entropy.take(1)
  relay.setAnswer('down')
  clock.advance(59_000)
  expect(sequences(await entropy.take(1))).toEqual([1000])
})

test.each<[string, unknown]>([
  ['is down', 'down'],
  ['forges', { ...createRound(1001), round: 1021 }],
  ['lags', createRound(999)],
  ['has a round that was signed before it was due', createRound(1100)],
  ['talks nonsense', 'garbage'],
  ['says nothing', {}],
])('a relay that %s: no sample once the last round is too old, and one again when it recovers', async (_, answer) => {
  const { relay, state, clock, entropy } = await setUp()
  await entropy.take(1)
  clock.advance(62_000)
  relay.setAnswer(answer)
  await expect(entropy.take(1)).rejects.toEqual(unavailable)
  relay.setAnswer()
  state.round = 1020
  expect(sequences(await entropy.take(1))).toEqual([1020])
})

test('rejects a round from the future', async () => {
  const { state, entropy } = await setUp()
  state.round = 1003
  await expect(entropy.take(1)).rejects.toEqual(unavailable)
})

test('rejects a round that is already too old', async () => {
  const { state, entropy } = await setUp()
  state.round = 900
  await expect(entropy.take(1)).rejects.toEqual(unavailable)
})

test('rejects calls after stop', async () => {
  const { entropy } = await setUp()
  await entropy.stop()
  await expect(entropy.take(1)).rejects.toMatchObject({ code: 'shutting_down' })
})
