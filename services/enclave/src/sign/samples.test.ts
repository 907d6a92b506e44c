import { createPrivateKey, hash, randomBytes, sign } from 'node:crypto'
import { createSimulatedSatellite } from '@countersign/attestation/simulator'
import {
  type DrandWitness,
  type EntropyWitness,
  fromHex,
  type Hex,
  quicknet,
  toEntropyMessage,
} from '@countersign/protocol'
import { beforeEach, describe, expect, test } from 'vitest'
import { beacon, createRound } from '../../test/beacon.ts'
import { createFakeClock } from '../../test/grant/issuers.ts'
import { createKnownTime } from '../../test/time/time.ts'
import { createWitness, satelliteKey } from '../../test/witness.ts'
import type { Time } from '../time/time.ts'
import { createSamples, type Samples } from './samples.ts'

const NOW = Date.UTC(2026, 5, 15, 12)
const SATELLITE = { kind: 'satellite', key: satelliteKey } as const
const use = (name: number, keyId = '1d'.repeat(16)) => ({
  keyId,
  kind: 'transaction' as const,
  digest: `0x${String(name).padStart(64, '0')}` as Hex,
})

let clock: ReturnType<typeof createFakeClock>
let time: Time
let samples: Samples

beforeEach(() => {
  clock = createFakeClock(NOW)
  time = createKnownTime(clock)
  time.raise(NOW)
  samples = createSamples({ sources: [SATELLITE], time })
})

test('the source of a sample is the setting that verified it', () => {
  const time = createKnownTime({ now: () => NOW })
  const round = createRound(NOW)
  const samples = createSamples({ sources: [SATELLITE, { kind: 'drand', ...beacon }, { kind: 'unsigned' }], time })
  for (const [witness, source] of [
    [createWitness(NOW), SATELLITE],
    [round, { kind: 'drand', ...beacon }],
    [{ ...createWitness(NOW), publicKey: '00'.repeat(32), signatureHex: '00'.repeat(64) }, { kind: 'unsigned' }],
  ] as const) {
    expect(samples.use(witness, { kind: 'off-chain' })).toBeUndefined()
    expect(samples.findSource(witness)).toEqual(source)
  }
  const without = createSamples({ sources: [SATELLITE], time })
  expect(without.findSource(round)).toBeUndefined()
})

describe('a sample', () => {
  test('is used once: three signatures need three samples', () => {
    const witness = createWitness(NOW)
    expect(samples.use(witness, use(1))).toBeUndefined()
    expect(samples.use(witness, use(2))).toBe('entropy_used')
    expect(samples.use(witness, use(1, '2d'.repeat(16)))).toBe('entropy_used')
    // A repeated call.
    expect(samples.use(witness, use(1))).toBeUndefined()
  })

  test('is used by exactly one of ten concurrent calls', () => {
    const witness = createWitness(NOW)
    const outcomes = Array.from({ length: 10 }, (_, name) => samples.use(witness, use(name)))
    expect(outcomes.filter((outcome) => outcome === undefined)).toHaveLength(1)
  })

  test('is the same with another time, number and name, because statements contain only its value', () => {
    const value = randomBytes(32)
    expect(samples.use(createWitness(NOW, value), use(1))).toBeUndefined()
    expect(samples.use(createWitness(NOW + 1_000, value), use(2))).toBe('entropy_used')
    expect(samples.use({ ...createWitness(NOW, value), source: 'other' }, use(2))).toBe('entropy_used')
  })

  test.each<[string, (witness: EntropyWitness) => EntropyWitness]>([
    ['another value', (witness) => ({ ...witness, valueHex: '11'.repeat(32) })],
    ['another time', (witness) => ({ ...witness, timestamp: new Date(NOW + 1).toISOString() })],
    ['another number', (witness) => ({ ...witness, sequence: witness.sequence + 1 })],
    ['another signature', (witness) => ({ ...witness, signatureHex: '00'.repeat(64) })],
    ['no key', (witness) => ({ ...witness, publicKey: '00'.repeat(32), signatureHex: '00'.repeat(64) })],
    ['a key of its own', signByStranger],
  ])('with %s is rejected and not remembered', (_, change) => {
    const witness = createWitness(NOW)
    expect(samples.use(change(witness), use(1))).toBe('entropy_refused')
    expect(samples.use(witness, use(2))).toBeUndefined()
  })

  function signByStranger(witness: EntropyWitness): EntropyWitness {
    const { publicKey, privateKey } = createSimulatedSatellite('another key')
    const der = Buffer.from(`302e020100300506032b657004220420${privateKey}`, 'hex')
    const { valueHex, sequence } = witness
    const message = toEntropyMessage({ value: fromHex(valueHex), timestampMs: NOW, sequence })
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    return { ...witness, publicKey, signatureHex: sign(null, message, key).toString('hex') }
  }

  test('gives the time: at most 65 s ahead, at most 65 s behind the floor', () => {
    expect(samples.use(createWitness(NOW - 65_001), use(1))).toBe('entropy_refused')
    expect(samples.use(createWitness(NOW - 65_000), use(2))).toBeUndefined()
    expect(samples.use(createWitness(NOW + 65_001), use(3))).toBe('entropy_refused')
    expect(time.floor()).toBe(NOW)
    expect(samples.use(createWitness(NOW + 65_000), use(4))).toBeUndefined()
    expect(time.floor()).toBe(NOW + 65_000)
    expect(samples.use(createWitness(NOW - 1), use(5))).toBe('entropy_refused')
  })

  test('moves the time by 65 s, also together with others: only clock, issuers, ID tokens and witnesses allow later ones', () => {
    const steps = Array.from({ length: 256 }, (_, index) => (index + 1) * 65_000)
    const outcomes = steps.map((aheadMs, index) => samples.use(createWitness(NOW + aheadMs), use(index)))
    expect(outcomes).toEqual([undefined, ...Array.from({ length: 255 }, () => 'entropy_refused')])
    expect(time.now()).toBe(NOW + 65_000)
    clock.advance(3_600_000)
    expect(samples.use(createWitness(NOW + 3_665_000), use(300))).toBeUndefined()
    expect(time.raise(NOW + 3_730_000)).toBe(true)
    expect(samples.use(createWitness(NOW + 3_795_001), use(301))).toBe('entropy_refused')
    expect(samples.use(createWitness(NOW + 3_795_000), use(301))).toBeUndefined()
  })

  test('of the present is rejected if the clock is more than 65 s behind and the time is otherwise unknown since', () => {
    clock.advance(-100_000)
    expect(samples.use(createWitness(NOW + 65_000), use(1))).toBeUndefined()
    expect(samples.use(createWitness(NOW + 65_001), use(2))).toBe('entropy_refused')
    clock.advance(100_001)
    expect(samples.use(createWitness(NOW + 65_001), use(2))).toBeUndefined()
  })
})

describe('an off-chain signature', () => {
  const offChain = { kind: 'off-chain' } as const

  test('needs a new sample each time, because such calls are never repeated', () => {
    const witness = createWitness(NOW)
    expect(samples.use(witness, offChain)).toBeUndefined()
    expect(samples.use(witness, offChain)).toBe('entropy_used')
    expect(samples.use(witness, use(1))).toBe('entropy_used')
  })

  test('cannot use the sample of a transaction', () => {
    const witness = createWitness(NOW)
    expect(samples.use(witness, use(1))).toBeUndefined()
    expect(samples.use(witness, offChain)).toBe('entropy_used')
    expect(samples.use(witness, use(1))).toBeUndefined()
  })

  test('exactly one of ten concurrent calls gets it', () => {
    const witness = createWitness(NOW)
    const outcomes = Array.from({ length: 10 }, () => samples.use(witness, offChain))
    expect(outcomes.filter((outcome) => outcome === undefined)).toHaveLength(1)
  })
})

test('an authorization can be repeated, and differs from a transaction with the same digest', () => {
  const witness = createWitness(NOW)
  const authorization = { ...use(1), kind: 'authorization' as const }
  expect(samples.use(witness, authorization)).toBeUndefined()
  expect(samples.use(witness, authorization)).toBeUndefined()
  expect(samples.use(witness, use(1))).toBe('entropy_used')
})

describe('a round of a beacon', () => {
  // A whole period, so that a round is due now.
  const DUE = beacon.genesisS * 1000 + Math.ceil((NOW / 1000 - beacon.genesisS) / 3) * 3_000

  beforeEach(() => {
    clock = createFakeClock(DUE)
    time = createKnownTime(clock)
    samples = createSamples({ sources: [{ kind: 'drand', ...beacon }, SATELLITE], time, limit: 1 })
  })

  test('serves many signatures, takes no memory, and gives the time', () => {
    const round = createRound(DUE)
    expect(samples.use(round, use(1))).toBeUndefined()
    expect(samples.use(round, use(2))).toBeUndefined()
    expect(samples.use(round, { kind: 'off-chain' })).toBeUndefined()
    expect(samples.use({ ...round, source: 'another name' }, use(3))).toBeUndefined()
    expect(time.floor()).toBe(DUE)
    expect(samples.use(createWitness(DUE), use(4))).toBeUndefined()
  })

  test.each<[string, Partial<DrandWitness>]>([
    ['another chain', { chainHash: 'cd'.repeat(32) }],
    ['another key', { publicKey: quicknet.key }],
    ['another value', { valueHex: '11'.repeat(32) }],
    ['another time', { timestamp: new Date(DUE + 3_000).toISOString() }],
    ['another number', { sequence: createRound(DUE).sequence + 1 }],
    [
      'the number and time of the round after',
      { sequence: createRound(DUE).sequence + 1, timestamp: new Date(DUE + 3_000).toISOString() },
    ],
    [
      'no signature',
      {
        signatureHex: `c0${'00'.repeat(47)}`,
        valueHex: hash('sha256', Buffer.from(`c0${'00'.repeat(47)}`, 'hex'), 'hex'),
      },
    ],
  ])('with %s is refused, before and after the right one', (_, changes) => {
    const round = createRound(DUE)
    expect(samples.use({ ...round, ...changes }, use(1))).toBe('entropy_refused')
    expect(time.floor()).toBe(0)
    expect(samples.use(round, use(1))).toBeUndefined()
    expect(samples.use({ ...round, ...changes }, use(1))).toBe('entropy_refused')
  })

  test('is current: at most 65 s ahead, at most 65 s behind the floor', () => {
    expect(samples.use(createRound(DUE + 66_000), use(1))).toBe('entropy_refused')
    expect(samples.use(createRound(DUE + 63_000), use(1))).toBeUndefined()
    expect(time.floor()).toBe(DUE + 63_000)
    expect(samples.use(createRound(DUE + 66_000), use(1))).toBe('entropy_refused')
    expect(samples.use(createRound(DUE - 3_000), use(1))).toBe('entropy_refused')
    expect(samples.use(createRound(DUE), use(1))).toBeUndefined()
  })

  test('is rejected if the settings do not name its beacon', () => {
    samples = createSamples({ sources: [SATELLITE, { kind: 'unsigned' }, { kind: 'drand', ...quicknet }], time })
    expect(samples.use(createRound(DUE), use(1))).toBe('entropy_refused')
  })
})

describe('remembered samples', () => {
  test('are deleted only when they are too old to be accepted again, for any clock', () => {
    const witness = createWitness(NOW)
    samples.use(witness, use(1))
    clock.advance(3_600_000)
    expect(samples.use(witness, use(2))).toBe('entropy_used')
    for (let step = 1; step <= 65; step += 1) samples.use(createWitness(NOW + step * 1_000), use(step))
    expect(samples.use(witness, use(2))).toBe('entropy_used')
    samples.use(createWitness(NOW + 65_001), use(3))
    expect(samples.use(witness, use(2))).toBe('entropy_refused')
  })

  test('end with the boot, and another enclave does not have them', () => {
    const witness = createWitness(NOW)
    expect(samples.use(witness, use(1))).toBeUndefined()
    expect(createSamples({ sources: [SATELLITE], time }).use(witness, use(2))).toBeUndefined()
  })

  test('fill the memory: new samples are then rejected and old calls repeated, until time has passed', () => {
    samples = createSamples({ sources: [SATELLITE], time, limit: 2 })
    const [first, second] = [createWitness(NOW), createWitness(NOW)]
    samples.use(first, use(1))
    samples.use(second, use(2))
    expect(samples.use(createWitness(NOW), use(3))).toBe('entropy_memory_full')
    expect(samples.use(first, use(1))).toBeUndefined()
    clock.advance(67_000)
    expect(samples.use(createWitness(NOW + 67_000), use(3))).toBeUndefined()
  })
})

describe('a source that does not sign', () => {
  const toUnsigned = (witness: EntropyWitness) => ({
    ...witness,
    publicKey: '00'.repeat(32),
    signatureHex: '00'.repeat(64),
    sequence: 0,
  })

  test('is accepted if the settings allow it; each sample once, and without giving the time', () => {
    samples = createSamples({ sources: [{ kind: 'unsigned' }], time })
    const witness = toUnsigned(createWitness(NOW + 60_000))
    expect(samples.use(witness, use(1))).toBeUndefined()
    expect(samples.use(witness, use(2))).toBe('entropy_used')
    expect(samples.use({ ...witness, timestamp: new Date(NOW).toISOString() }, use(2))).toBe('entropy_used')
    expect(samples.use(toUnsigned(createWitness(NOW + 65_001)), use(3))).toBe('entropy_refused')
    expect(samples.use(createWitness(NOW), use(4))).toBe('entropy_refused')
    expect(time.floor()).toBe(NOW)
  })

  test('a repeated call with a later time is remembered for that time', () => {
    samples = createSamples({ sources: [{ kind: 'unsigned' }], time })
    const witness = toUnsigned(createWitness(NOW))
    const later = { ...witness, timestamp: new Date(NOW + 30_000).toISOString() }
    for (const one of [witness, later, witness]) expect(samples.use(one, use(1))).toBeUndefined()
    for (const raisedMs of [60_000, 90_000]) expect(time.raise(NOW + raisedMs)).toBe(true)
    // Lets the first time expire.
    expect(samples.use(toUnsigned(createWitness(NOW + 90_000)), use(2))).toBeUndefined()
    expect(samples.use(later, use(3))).toBe('entropy_used')
  })

  test('next to one that signs, a signed sample needs a valid signature', () => {
    samples = createSamples({ sources: [SATELLITE, { kind: 'unsigned' }], time })
    expect(samples.use({ ...createWitness(NOW), signatureHex: '00'.repeat(64) }, use(1))).toBe('entropy_refused')
    expect(samples.use(createWitness(NOW), use(2))).toBeUndefined()
  })
})
