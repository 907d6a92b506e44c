import { createSimulatedBeacon } from '@countersign/attestation/simulator'
import { parseDrandBeacon, toRoundTimeMs, verifyDrandWitness } from '@countersign/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type DrandRelay, startDrandRelay } from './drandRelay.ts'

const simulated = createSimulatedBeacon()
const { beacon } = simulated
let relay: DrandRelay
let at = 0

beforeEach(async () => {
  relay = await startDrandRelay(simulated, { now: () => at })
  at = toRoundTimeMs(beacon, 1000)
})
afterEach(() => relay.stop())

const ask = () => fetch(`${relay.url}/${beacon.chainHash}/public/latest`)

test('the newest round, signed by the beacon that the setting names', async () => {
  expect(parseDrandBeacon(relay.setting)).toEqual(beacon)
  for (const [more, round] of [
    [2_999, 1000],
    [3_000, 1001],
  ] as const) {
    at = toRoundTimeMs(beacon, 1000) + more
    const answer = await (await ask()).json()
    expect(answer).toMatchObject({ round })
    const { chainHash, key: publicKey } = beacon
    const timestamp = new Date(toRoundTimeMs(beacon, round)).toISOString()
    const { signature: signatureHex, randomness: valueHex } = answer as { signature: string; randomness: string }
    const shared = { kind: 'drand', source: 'relay', chainHash, publicKey, timestamp, sequence: round } as const
    expect(verifyDrandWitness(beacon, { ...shared, signatureHex, valueHex })).toBe(true)
  }
})

test('it answers what it is told to, and counts what it is asked', async () => {
  relay.setAnswer({ round: 5 })
  expect(await (await ask()).json()).toEqual({ round: 5 })
  relay.setAnswer('down')
  expect((await ask()).status).toBe(503)
  relay.setAnswer()
  expect(await (await ask()).json()).toMatchObject({ round: 1000 })
  expect((await fetch(`${relay.url}/${'00'.repeat(32)}/public/latest`)).status).toBe(404)
  expect(relay.requests).toBe(4)
})
