import { setImmediate } from 'node:timers/promises'
import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import { fromHex, toEntropyMessage, verifyEd25519 } from '@countersign/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Satellite, startSatellite } from './satellite.ts'
import { SATELLITE_KEY } from './stack/environments.ts'

type Sample = { value: string; timestamp: string; sequence: number; publicKey: string; signature: string }

const now = Date.parse('2026-06-15T12:00:00.000Z')
let satellite: Satellite

beforeEach(async () => {
  satellite = await startSatellite({ now: () => now })
})
afterEach(() => satellite.stop())

const ask = (count: number | string) => fetch(`${satellite.url}/v1/samples?count=${count}`)
const getSamples = async (count = 2): Promise<Sample[]> =>
  ((await (await ask(count)).json()) as { samples: Sample[] }).samples
const isSigned = ({ value, timestamp, sequence, publicKey, signature }: Sample) =>
  verifyEd25519(
    fromHex(publicKey),
    fromHex(signature),
    toEntropyMessage({ value: fromHex(value), timestampMs: Date.parse(timestamp), sequence }),
  )

test('it signs with the key that verifiers know as mock', async () => {
  expect(satellite.publicKey).toBe(createSimulatedSatellite().publicKey)
  expect(satellite.publicKey).toBe(SATELLITE_KEY)
  const samples = [...(await getSamples(3)), ...(await getSamples(3))]
  expect(samples.every((sample) => isSigned(sample) && sample.publicKey === satellite.publicKey)).toBe(true)
  expect(new Set(samples.map(({ value }) => value)).size).toBe(6)
  const sequences = samples.map(({ sequence }) => sequence)
  expect(sequences).toEqual(sequences.toSorted((left, right) => left - right))
  expect(new Set(sequences).size).toBe(6)
})

test.each(['0', '257', '-1', '1.5', '01', '1e1', ''])('a count of %j is refused', async (count) => {
  expect((await ask(count)).status).toBe(400)
})

test('there is nothing at other paths', async () => {
  expect((await fetch(`${satellite.url}/v2/samples?count=1`)).status).toBe(404)
})

test('requests are counted, whatever became of them', async () => {
  await ask(1)
  satellite.setFault('down')
  await expect(ask(1)).rejects.toThrow()
  satellite.setFault('error')
  expect((await ask(1)).status).toBe(500)
  expect(satellite.requests).toBe(3)
})

test('replay: the same samples again', async () => {
  const samples = await getSamples(3)
  satellite.setFault('replay')
  expect(await getSamples(2)).toEqual(samples.slice(0, 2))
  expect(await getSamples(9)).toEqual(samples)
})

test('replay, from the start', async () => {
  satellite.setFault('replay')
  expect(await getSamples()).toEqual(await getSamples())
})

test('stale and future: well signed, at the wrong time', async () => {
  satellite.setFault('stale')
  const [stale] = await getSamples()
  satellite.setFault('future')
  const [future] = await getSamples()
  expect([stale, future].map((sample) => sample && [isSigned(sample), Date.parse(sample.timestamp) - now])).toEqual([
    [true, -600_000],
    [true, 600_000],
  ])
})

test('wrong-signature and foreign-key', async () => {
  satellite.setFault('wrong-signature')
  expect((await getSamples()).map(isSigned)).toEqual([false, false])
  satellite.setFault('foreign-key')
  const samples = await getSamples()
  expect(samples.map((sample) => [isSigned(sample), sample.publicKey === satellite.publicKey])).toEqual([
    [true, false],
    [true, false],
  ])
})

test('truncated and garbage are no JSON', async () => {
  satellite.setFault('truncated')
  await expect(ask(2).then((response) => response.json())).rejects.toThrow()
  satellite.setFault('garbage')
  await expect(ask(2).then((response) => response.json())).rejects.toThrow()
})

test('too-many: one more than asked for', async () => {
  satellite.setFault('too-many')
  expect(await getSamples(2)).toHaveLength(3)
})

test('slow: late, but it comes, at once when that ends; and stopping does not wait for it', async () => {
  satellite.setFault('slow', { delayMs: 1 })
  expect(await getSamples(1)).toHaveLength(1)
  satellite.setFault('slow', { delayMs: 3_600_000 })
  const late = getSamples(1)
  while (satellite.requests < 2) await setImmediate()
  satellite.setFault('slow', { delayMs: 3_600_000 })
  expect(await late).toHaveLength(1)
  const waiting = expect(ask(1)).rejects.toThrow()
  while (satellite.requests < 3) await setImmediate()
  await satellite.stop()
  await waiting
})

test('without a fault it behaves again', async () => {
  satellite.setFault('wrong-signature')
  satellite.setFault()
  expect((await getSamples()).map(isSigned)).toEqual([true, true])
})
