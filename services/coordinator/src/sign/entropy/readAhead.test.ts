import { setImmediate } from 'node:timers/promises'
import type { Witness } from '@countersign/receipt'
import { type SatelliteFault, startSatellite } from '@countersign/testing'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createFakeClock, type FakeClock } from '../../../test/ports.ts'
import {
  createFakeClaims,
  createFakeSatellite,
  createFakeSource,
  type FakeClaims,
  type FakeSource,
} from '../../../test/sign/entropy/entropy.ts'
import { CoordinatorError } from '../../errors.ts'
import { EntropySourceError } from './entropySource.ts'
import { createReadAhead, type ReadAhead, type ReadAheadParameters } from './readAhead.ts'
import { createSatelliteSource } from './satellite.ts'

const satellite = createFakeSatellite()
const foreign = createFakeSatellite()
const unavailable = expect.objectContaining({ name: 'CoordinatorError', code: 'entropy_unavailable' })

let clock: FakeClock
let source: FakeSource
let store: FakeClaims
let lines: { msg: string }[]
let started: ReadAhead[]

beforeEach(() => {
  clock = createFakeClock()
  source = createFakeSource(satellite, clock)
  store = createFakeClaims()
  lines = []
  started = []
})

afterEach(async () => {
  vi.useRealTimers()
  await Promise.all(started.map((entropy) => entropy.stop()))
})

/** With a long timeout, so that a busy machine fails no test. */
function start(parameters: Partial<ReadAheadParameters> = {}): ReadAhead {
  return startAsIs({ retryMs: 0, waitMs: 30_000, ...parameters })
}

function startAsIs(parameters: Partial<ReadAheadParameters> = {}): ReadAhead {
  const log = { warn: (entry: { msg: string }) => void lines.push(entry) }
  const publicKeys = [satellite.publicKey]
  const entropy = createReadAhead({ source, store, clock, publicKeys, log, ...parameters })
  started.push(entropy)
  return entropy
}

const create = (count: number, ageMs = 0) =>
  Array.from({ length: count }, () => satellite.createWitness({ timestampMs: clock.now() - ageMs }))
const toValues = (witnesses: readonly Witness[]) => witnesses.map(({ valueHex }) => valueHex)
const toAges = (witnesses: readonly Witness[]) =>
  witnesses.map(({ timestamp }) => clock.now() - new Date(timestamp).getTime())

describe('returning samples', () => {
  test('as many as requested, each claimed', async () => {
    const taken = await start().take(3)
    expect(taken).toHaveLength(3)
    expect(toValues(taken).every((value) => store.given.has(value))).toBe(true)
  })

  test('256 concurrent callers get 256 distinct samples from shared requests', async () => {
    const entropy = start()
    const taken = await Promise.all(Array.from({ length: 256 }, () => entropy.take(1)))
    expect(new Set(toValues(taken.flat())).size).toBe(256)
    expect(source.calls).toEqual([256, 256])
  })

  test('more than the buffer and one request provide', async () => {
    const taken = await start({ capacity: 4 }).take(2_000)
    expect(new Set(toValues(taken)).size).toBe(2_000)
    expect(Math.max(...source.calls)).toBe(256)
  })

  test('returns none for zero, and rejects other counts', async () => {
    const entropy = start()
    expect(await entropy.take(0)).toEqual([])
    for (const count of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(entropy.take(count)).rejects.toThrow(RangeError)
    }
    expect(source.calls).toEqual([])
  })

  test('ignores additional samples in a response', async () => {
    source.answer = (count) => create(count + 10)
    await start({ capacity: 1 }).take(1)
    expect(store.offered).toHaveLength(2)
  })

  test('serves callers in order: a small request does not overtake a large one', async () => {
    const entropy = start()
    source.answer = () => create(2)
    const order: string[] = []
    const large = entropy.take(6).then(() => order.push('large'))
    const small = entropy.take(1).then(() => order.push('small'))
    await Promise.all([large, small])
    expect(order).toEqual(['large', 'small'])
  })

  test('two coordinators on one database never share a sample', async () => {
    const pool = create(600)
    source.answer = (count) => pool.slice(0, count)
    const other = createFakeSource(satellite, clock)
    let next = 0
    other.answer = (count) => {
      next += count
      return pool.slice(next - count, next)
    }
    const [one, two] = [start(), start({ source: other })]
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) => (index % 2 ? one : two).take(1 + (index % 7))),
    )
    const taken = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
    expect(taken.length).toBeGreaterThan(70)
    expect(new Set(toValues(taken)).size).toBe(taken.length)
  })
})

describe('reading ahead', () => {
  test('the next caller does not wait for the source', async () => {
    const entropy = start()
    await entropy.take(1)
    expect(entropy.stats().buffered).toBe(1)
    source.answer = () => new Promise(() => {})
    expect(await entropy.take(1)).toHaveLength(1)
  })

  test('follows demand: buffers as many as a second uses', async () => {
    const entropy = start()
    await entropy.take(100)
    expect(source.calls).toEqual([200])
    expect(entropy.stats().buffered).toBe(100)
    clock.advance(1_000)
    await entropy.take(60)
    await setImmediate()
    // 100 used a second ago, 60 now: buffers 100/e + 60.
    expect(entropy.stats().buffered).toBe(97)
  })

  test('never buffers more than its capacity', async () => {
    const entropy = start({ capacity: 10 })
    await entropy.take(200)
    expect(entropy.stats().buffered).toBe(10)
    source.answer = () => create(256)
    await entropy.take(10)
    await setImmediate()
    expect(entropy.stats().buffered).toBe(10)
  })

  test('does not call the source for every signature', async () => {
    const entropy = start()
    await entropy.take(100)
    for (let taken = 0; taken < 30; taken++) await entropy.take(1)
    expect(source.calls).toHaveLength(1)
  })

  test('makes no request and runs no timer while idle', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    const entropy = start()
    await entropy.take(1)
    const { length } = source.calls
    expect(vi.getTimerCount()).toBe(0)
    clock.advance(3_600_000)
    await vi.advanceTimersByTimeAsync(3_600_000)
    await setImmediate()
    expect(source.calls).toHaveLength(length)
  })

  test('a background failure fails no caller, because the reserve covers it', async () => {
    const entropy = start()
    await entropy.take(4)
    source.answer = () => Promise.reject(new EntropySourceError('unreachable'))
    for (let taken = 0; taken < 4; taken++) expect(await entropy.take(1)).toHaveLength(1)
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
  })
})

describe('age', () => {
  test('a buffered sample can be used for 60 s, and not a millisecond longer', async () => {
    const entropy = start({ waitMs: 10 })
    await entropy.take(2)
    clock.advance(60_000)
    source.answer = () => new Promise(() => {})
    expect(toAges(await entropy.take(1))).toEqual([60_000])
    clock.advance(1)
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    expect(entropy.stats()).toMatchObject({ buffered: 0, unused: 1 })
  })

  test('uses fresh samples first, and the reserve only without them', async () => {
    const entropy = start()
    await entropy.take(4)
    clock.advance(5_001)
    // Four are older than 5 s now and form the reserve. This call uses one and starts buying fresh ones.
    expect(toAges(await entropy.take(1))).toEqual([5_001])
    await setImmediate()
    clock.advance(1)
    expect(toAges(await entropy.take(1))).toEqual([1])
    await setImmediate()
    source.answer = () => Promise.reject(new EntropySourceError('unreachable'))
    const rest = await entropy.take(entropy.stats().buffered)
    expect(Math.max(...toAges(rest))).toBe(5_002)
  })

  test('buys nothing while the samples are up to 5 s old', async () => {
    const entropy = start()
    await entropy.take(2)
    const { length } = source.calls
    clock.advance(5_000)
    await entropy.take(1)
    await setImmediate()
    expect(source.calls).toHaveLength(length)
  })

  test('does not return a sample that becomes too old while it is claimed', async () => {
    const old = create(2, 59_999)
    source.answer = () => old
    const slow = {
      async claimSamples(witnesses: readonly Witness[]) {
        clock.advance(2)
        source.answer = (count) => create(count)
        return store.claimSamples(witnesses, clock.now())
      },
    }
    const taken = await start({ store: slow }).take(1)
    expect(toValues(old)).not.toContain(taken[0]?.valueHex)
  })

  test('does not use samples from the future after the clock is set back', async () => {
    const entropy = start()
    await entropy.take(1)
    const [calls] = [source.calls.length]
    clock.advance(-5_001)
    const [witness] = await entropy.take(1)
    expect(source.calls.length).toBeGreaterThan(calls)
    expect(toAges([witness as Witness])).toEqual([0])
    expect(entropy.stats().unused).toBe(1)
  })
})

describe('never returns an invalid sample', () => {
  test.each<[string, (count: number) => Witness[]]>([
    ['stale', (count) => create(count, 60_001)],
    ['future', (count) => create(count, -5_001)],
    ['malformed', (count) => create(count).map((witness) => ({ ...witness, timestamp: 'now' }))],
    [
      'foreign_key',
      (count) => Array.from({ length: count }, () => foreign.createWitness({ timestampMs: clock.now() })),
    ],
  ])('%s: counted, logged, not claimed, and the source asked five times', async (fault, answer) => {
    source.answer = answer
    const entropy = start()
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    expect(source.calls).toHaveLength(5)
    expect(store.offered).toEqual([])
    expect(entropy.stats()).toMatchObject({ refused: { [fault]: 10 }, handedOut: 0, buffered: 0 })
    expect(lines).toContainEqual({ msg: 'Refused entropy samples', source: 'fake', reason: fault, count: 2 })
    source.answer = (count) => create(count)
    expect(await entropy.take(1)).toHaveLength(1)
  })

  test('uses the valid ones among invalid ones', async () => {
    const good = create(2)
    source.answer = () => [...create(1, 60_002), ...good, ...create(1, 60_001)]
    const taken = await start().take(2)
    expect(toValues(taken)).toEqual(toValues(good))
  })

  test('rejects unsigned samples unless allowed', async () => {
    source.isSigned = false
    await expect(start().take(1)).rejects.toEqual(unavailable)
    expect(await start({ allowUnsigned: true, publicKeys: [] }).take(1)).toHaveLength(1)
  })

  test('rejects a repeated sample', async () => {
    const replayed = create(2)
    source.answer = () => replayed
    const entropy = start()
    await entropy.take(1)
    await entropy.take(1)
    await setImmediate()
    const { length } = source.calls
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    expect(source.calls.length - length).toBeLessThanOrEqual(6)
    source.answer = (count) => create(count)
    expect(await entropy.take(1)).toHaveLength(1)
  })

  test('rejects a sample twice in one response, or again with another number', async () => {
    const value = new Uint8Array(32).fill(7)
    source.answer = () =>
      [1, 1, 2].map((sequence) => satellite.createWitness({ timestampMs: clock.now(), sequence, value }))
    const entropy = start()
    expect(await entropy.take(1)).toHaveLength(1)
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    expect(store.given.size).toBe(1)
    expect(entropy.stats().replayed).toBeGreaterThan(2)
  })

  test('returns only samples that the store claimed', async () => {
    const stranger = create(1)
    const generous = { claimSamples: async () => stranger }
    await expect(start({ store: generous }).take(1)).rejects.toEqual(unavailable)
    const doubling = { claimSamples: async (witnesses: readonly Witness[]) => [...witnesses, ...witnesses] }
    source.answer = () => create(1)
    const taken = await start({ store: doubling }).take(2)
    expect(new Set(toValues(taken)).size).toBe(2)
  })

  test('rejects an invalid pinned key immediately', () => {
    expect(() => start({ publicKeys: ['00'.repeat(32)] })).toThrow()
  })
})

describe('forged samples', () => {
  const forgedHex = `${'00'.repeat(63)}01`
  const forge = (witness: Witness) => ({ ...witness, signatureHex: forgedHex })
  const refusal = { msg: 'Refused entropy samples', source: 'fake' }

  test('counts and logs samples that the enclave rejected, by reason', async () => {
    const entropy = start()
    source.answer = (count) => create(count).map((sample, index) => (index === 0 ? forge(sample) : sample))
    const taken = await entropy.take(3)
    entropy.refuse?.(taken.slice(0, 2))
    expect(entropy.stats()).toMatchObject({ refused: { wrong_signature: 1, by_enclave: 1 }, handedOut: 1 })
    expect(lines).toEqual(['wrong_signature', 'by_enclave'].map((reason) => ({ ...refusal, reason, count: 1 })))
  })

  test('counts each sample of a source that sends only forged ones', async () => {
    const entropy = start()
    source.answer = (count) => create(count).map(forge)
    await expect(entropy.takeVerified(3)).rejects.toEqual(unavailable)
    expect(lines).toContainEqual({ ...refusal, reason: 'wrong_signature', count: 3 })
    const { refused, handedOut, buffered, unused } = entropy.stats()
    expect([handedOut, buffered, unused, refused.wrong_signature]).toEqual([0, 0, 0, store.given.size])
    source.answer = (count) => create(count)
    expect(await entropy.takeVerified(3)).toHaveLength(3)
  })

  test('verifies samples bought along with a forged one before use', async () => {
    const entropy = start()
    source.answer = (count) => create(count).map(forge)
    await entropy.take(20)
    await entropy.take(20)
    source.answer = (count) => create(count)
    const taken = [...(await entropy.takeVerified(2)), ...(await entropy.take(20))]
    expect(taken.filter(({ signatureHex }) => signatureHex === forgedHex)).toEqual([])
  })

  test('does not apply to a source that does not sign', async () => {
    source.isSigned = false
    source.answer = (count) => create(count).map(forge)
    expect(await start({ allowUnsigned: true, publicKeys: [] }).takeVerified(2)).toHaveLength(2)
  })
})

describe('failures', () => {
  test('a source that fails twice in a row fails all waiting callers, and the next call retries', async () => {
    source.answer = () => Promise.reject(new EntropySourceError('status'))
    const entropy = start()
    const outcomes = await Promise.allSettled([entropy.take(1), entropy.take(2), entropy.take(3)])
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason)).toEqual(
      Array(3).fill(unavailable),
    )
    expect(source.calls).toHaveLength(2)
    expect(entropy.stats().failures).toBe(2)
    expect(lines).toEqual(Array(2).fill({ msg: 'Got no entropy samples', source: 'fake', reason: 'status' }))
    source.answer = (count) => create(count)
    expect(await entropy.take(1)).toHaveLength(1)
  })

  test('one failed request fails no caller, and is retried after a pause', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    source.answer = () => Promise.reject(new EntropySourceError('timeout'))
    const taken = startAsIs().take(1)
    await vi.advanceTimersByTimeAsync(99)
    expect(source.calls).toHaveLength(1)
    source.answer = (count) => create(count)
    await vi.advanceTimersByTimeAsync(1)
    expect(await taken).toHaveLength(1)
  })

  test('a failing source is called once per caller, without delays', async () => {
    source.answer = () => Promise.reject(new EntropySourceError('unreachable'))
    const entropy = start()
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    const { length } = source.calls
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    expect(source.calls).toHaveLength(length + 1)
  })

  test('forgets an old failure', async () => {
    const entropy = start()
    await entropy.take(1)
    source.answer = () => Promise.reject(new EntropySourceError('unreachable'))
    await entropy.take(1)
    await expect.poll(() => entropy.stats().failures).toBe(1)
    clock.advance(60_001)
    let calls = 0
    source.answer = (count) => (calls++ === 0 ? Promise.reject(new EntropySourceError('timeout')) : create(count))
    expect(await entropy.take(1)).toHaveLength(1)
  })

  test('failures with samples in between are not in a row', async () => {
    let calls = 0
    source.answer = (count) => (calls++ % 2 === 0 ? Promise.reject(new Error('gone')) : create(count))
    const entropy = start()
    for (let round = 0; round < 5; round++) expect(await entropy.take(300)).toHaveLength(300)
  })

  test('if the source fails, returns the remaining samples in order of the calls', async () => {
    const entropy = start({ capacity: 16 })
    const [first] = await entropy.take(4)
    source.answer = () => Promise.reject(new EntropySourceError('unreachable'))
    const left = entropy.stats().buffered
    expect(left).toBe(4)
    const [some, none] = await Promise.allSettled([entropy.take(16), entropy.take(1)])
    expect(some).toMatchObject({ status: 'fulfilled', value: { length: left } })
    expect(none).toMatchObject({ status: 'rejected', reason: unavailable })
    expect(toValues((some as PromiseFulfilledResult<Witness[]>).value)).not.toContain(first?.valueHex)
  })

  test('a caller that arrives during a failing request gets a separate one', async () => {
    let reject: (error: unknown) => void = () => {}
    source.answer = () => Promise.reject(new Error('gone'))
    const entropy = start()
    await expect(entropy.take(1)).rejects.toEqual(unavailable)
    source.answer = () =>
      new Promise((_resolve, onReject) => {
        reject = onReject
      })
    const early = entropy.take(1)
    await setImmediate()
    const late = entropy.take(1)
    source.answer = (count) => create(count)
    reject(new Error('gone'))
    await expect(early).rejects.toEqual(unavailable)
    expect(await late).toHaveLength(1)
  })

  test('tolerates one failure among several requests', async () => {
    let calls = 0
    source.answer = (count) => (calls++ === 0 ? Promise.reject(new Error('gone')) : create(count))
    expect(await start().take(600)).toHaveLength(600)
  })

  test('passes no foreign text to callers or logs', async () => {
    source.answer = () => Promise.reject(new Error('secret'))
    const error: CoordinatorError = await start()
      .take(1)
      .catch((reason) => reason)
    expect(error.message + error.details + JSON.stringify(lines)).not.toContain('secret')
  })

  test('no caller waits longer than 5 s for a silent source', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    source.answer = () => new Promise(() => {})
    const entropy = startAsIs()
    let outcome: unknown
    entropy.take(1).catch((error) => {
      outcome = error
    })
    await vi.advanceTimersByTimeAsync(4_999)
    expect(outcome).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(outcome).toEqual(unavailable)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('buffers samples that came too late for their caller', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let resolve: (witnesses: Witness[]) => void = () => {}
    source.answer = () =>
      new Promise((onResolve) => {
        resolve = onResolve
      })
    const entropy = startAsIs()
    const late = expect(entropy.take(1)).rejects.toEqual(unavailable)
    await vi.advanceTimersByTimeAsync(5_000)
    await late
    const good = create(2)
    resolve(good)
    await store.next()
    expect(toValues(await entropy.take(1))).toEqual([good[0]?.valueHex])
  })

  test('spreads requests that return nothing new: 1.5 s for five', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    source.answer = () => []
    let outcome: unknown
    startAsIs()
      .take(1)
      .catch((error) => {
        outcome = error
      })
    await vi.advanceTimersByTimeAsync(1_499)
    await setImmediate()
    expect([source.calls.length, outcome]).toEqual([4, undefined])
    await vi.advanceTimersByTimeAsync(1)
    await setImmediate()
    expect([source.calls.length, outcome]).toEqual([5, unavailable])
  })

  test('returns database_unavailable if the database is down', async () => {
    const claimSamples = () => Promise.reject(new CoordinatorError('database_unavailable', 'no database'))
    await expect(start({ store: { claimSamples } }).take(1)).rejects.toMatchObject({ code: 'database_unavailable' })
  })

  const databaseDown = expect.objectContaining({ name: 'CoordinatorError', code: 'database_unavailable' })
  const refuseClaim = () => Promise.reject(new CoordinatorError('database_unavailable', 'no database'))

  test('blames the database, not the entropy source, if a claim gets no answer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const entropy = startAsIs({ store: { claimSamples: () => new Promise(() => {}) } })
    // Stopping it would wait for the claim.
    started = []
    const waiting = expect(entropy.take(1)).rejects.toEqual(databaseDown)
    await setImmediate()
    clock.advance(5_000)
    await vi.advanceTimersByTimeAsync(5_000)
    await waiting
  })

  test('blames a slow entropy source, even if a claim has just started', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let answer = () => {}
    source.answer = (count) => new Promise((resolve) => (answer = () => resolve(create(count))))
    const entropy = startAsIs({ store: { claimSamples: () => new Promise(() => {}) } })
    // Stopping it would wait for the claim.
    started = []
    const waiting = expect(entropy.take(1)).rejects.toEqual(unavailable)
    await setImmediate()
    clock.advance(4_900)
    answer()
    await setImmediate()
    clock.advance(100)
    await vi.advanceTimersByTimeAsync(5_000)
    await waiting
  })

  test('reports the database if its first failure is followed by a request that takes too long', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    source.answer = (count) => (source.calls.length === 1 ? create(count) : new Promise(() => {}))
    const entropy = startAsIs({ store: { claimSamples: refuseClaim } })
    const waiting = expect(entropy.take(1)).rejects.toEqual(databaseDown)
    await setImmediate()
    clock.advance(5_000)
    await vi.advanceTimersByTimeAsync(5_000)
    await waiting
    expect(source.calls).toHaveLength(2)
  })

  test('reports the database if the source fails too', async () => {
    source.answer = (count) =>
      source.calls.length % 3 === 1 ? Promise.reject(new EntropySourceError('unreachable')) : create(count)
    const entropy = start({ store: { claimSamples: refuseClaim } })
    await expect(entropy.take(300)).rejects.toEqual(databaseDown)
    expect(source.calls).toEqual([256, 256, 88, 256, 256, 88])
  })

  test('returns no samples for part of a request if the database is down', async () => {
    const claims = { claimSamples: store.claimSamples }
    const entropy = start({ store: { claimSamples: (...asked) => claims.claimSamples(...asked) } })
    await entropy.take(1)
    expect(entropy.stats().buffered).toBe(1)
    claims.claimSamples = refuseClaim
    await expect(entropy.take(3)).rejects.toEqual(databaseDown)
    expect(entropy.stats()).toMatchObject({ buffered: 1, handedOut: 1 })
  })
})

describe('stop', () => {
  test('rejects waiting and later callers, and makes no more requests', async () => {
    source.answer = () => new Promise(() => {})
    const entropy = start()
    const waiting = expect(entropy.take(1)).rejects.toMatchObject({ code: 'shutting_down' })
    await setImmediate()
    await entropy.stop()
    await waiting
    await expect(entropy.take(1)).rejects.toMatchObject({ code: 'shutting_down' })
    expect(source.calls).toHaveLength(1)
    expect(lines).toEqual([])
  })

  test('waits for a running claim, and does not claim a later response', async () => {
    let isClaiming = false
    let end = () => {}
    const slow = {
      claimSamples: (witnesses: readonly Witness[]) =>
        new Promise<Witness[]>((resolve) => {
          isClaiming = true
          end = () => {
            isClaiming = false
            resolve([...witnesses])
          }
          began()
        }),
    }
    let began = () => {}
    const claiming = new Promise<void>((resolve) => {
      began = resolve
    })
    const entropy = start({ store: slow })
    const waiting = expect(entropy.take(1)).rejects.toMatchObject({ code: 'shutting_down' })
    await claiming
    const stopped = entropy.stop().then(() => isClaiming)
    await waiting
    end()
    expect(await stopped).toBe(false)
    expect(entropy.stats().buffered).toBe(0)
  })

  test('ends a pause, and is idempotent', async () => {
    source.answer = () => []
    const entropy = start({ retryMs: 60_000 })
    const waiting = expect(entropy.take(1)).rejects.toMatchObject({ code: 'shutting_down' })
    await setImmediate()
    await Promise.all([entropy.stop(), entropy.stop()])
    await waiting
  })
})

test.each<[SatelliteFault, number]>([
  ['down', 0],
  ['wrong-signature', 10],
])(
  'over HTTP, a satellite with the fault %s: returns no sample as genuine, and recovers when it ends',
  async (fault, refused) => {
    const remote = await startSatellite()
    onTestFinished(() => remote.stop())
    const entropy = start({
      source: createSatelliteSource({ url: remote.url, fetch }),
      clock: { now: Date.now },
      publicKeys: [remote.publicKey],
    })
    remote.setFault(fault)
    await expect(entropy.takeVerified(2)).rejects.toEqual(unavailable)
    expect(entropy.stats()).toMatchObject({ handedOut: 0, buffered: 0 })
    expect(entropy.stats().refused.wrong_signature).toBeGreaterThanOrEqual(refused)
    remote.setFault()
    expect(await entropy.takeVerified(2)).toHaveLength(2)
  },
)

describe('in any order of responses, claims and calls', () => {
  const step = fc.record({
    count: fc.integer({ min: 1, max: 12 }),
    advanceMs: fc.constantFrom(0, 0, 0, 900, 5_001, 30_000, 60_000, 60_001, -6_000),
    reader: fc.nat({ max: 1 }),
    isVerified: fc.boolean(),
    answers: fc.array(
      fc.record({
        kind: fc.constantFrom('good', 'good', 'good', 'good', 'replay', 'forged', 'foreign', 'old', 'ahead', 'error'),
        ageMs: fc.integer({ min: -5_000, max: 60_000 }),
        share: fc.constantFrom(1, 1, 0.5),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  })

  test('returns no sample twice, too old or unclaimed, and no forged one as verified', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(step, { minLength: 1, maxLength: 8 }), async (scheduler, steps) => {
        const time = createFakeClock()
        const claims = createFakeClaims()
        const sent: Witness[] = []
        const genuine = new Set<string>()
        const plan = steps.flatMap(({ answers }) => answers)

        // Handles failures here, because one thrown outside the scheduler without a waiting caller would count as a failed test.
        const answer = async (count: number): Promise<Witness[] | EntropySourceError> => {
          const { kind, ageMs, share } = plan.shift() ?? { kind: 'good', ageMs: 0, share: 1 }
          const make = (): Witness => {
            const replayed = sent[sent.length - 1]
            if (kind === 'replay' && replayed) return replayed
            const shift = kind === 'old' ? 60_001 : kind === 'ahead' ? -5_001 : ageMs
            const signer = kind === 'foreign' ? foreign : satellite
            const witness = signer.createWitness({ timestampMs: time.now() - shift })
            if (kind === 'forged') return { ...witness, sequence: witness.sequence + 1 }
            if (kind !== 'foreign') genuine.add(witness.valueHex)
            sent.push(witness)
            return witness
          }
          if (kind === 'error') return new EntropySourceError('unreachable')
          return Array.from({ length: Math.ceil(count * share) }, make)
        }
        const scheduled = scheduler.scheduleFunction(answer)
        const getSamples = async (count: number) => {
          const samples = await scheduled(count)
          if (samples instanceof EntropySourceError) throw samples
          return samples
        }
        const readers = [0, 1].map(() => {
          const mine = new Set<string>()
          const entropy = createReadAhead({
            source: { name: 'fake', isSigned: true, getSamples },
            store: {
              claimSamples: scheduler.scheduleFunction(async (witnesses: readonly Witness[], now: number) => {
                const given = await claims.claimSamples(witnesses, now)
                for (const { valueHex } of given) mine.add(valueHex)
                return given
              }),
            },
            clock: time,
            publicKeys: [satellite.publicKey],
            capacity: 16,
            retryMs: 0,
            waitMs: 30_000,
            log: { warn: () => {} },
          })
          return { entropy, mine }
        })

        const used: string[] = []
        const takes: Promise<void>[] = []
        const { task } = scheduler.scheduleSequence(
          steps.map(({ count, advanceMs, reader, isVerified }) => async () => {
            time.advance(advanceMs)
            const { entropy, mine } = readers[reader] as (typeof readers)[number]
            const taken = entropy[isVerified ? 'takeVerified' : 'take'](count).then(
              (witnesses) => {
                // Fewer if no more were available, but never none.
                expect(witnesses.length).toBeGreaterThan(0)
                expect(witnesses.length).toBeLessThanOrEqual(count)
                for (const { valueHex, timestamp } of witnesses) {
                  used.push(valueHex)
                  expect(mine.has(valueHex) && (genuine.has(valueHex) || !isVerified)).toBe(true)
                  const ageMs = time.now() - new Date(timestamp).getTime()
                  expect(ageMs).toBeLessThanOrEqual(60_000)
                  expect(ageMs).toBeGreaterThanOrEqual(-5_000)
                }
              },
              (error) => expect(error).toEqual(unavailable),
            )
            takes.push(taken)
          }),
        )
        await scheduler.waitFor(task.then(() => Promise.all(takes)))
        expect(takes).toHaveLength(steps.length)
        expect(new Set(used).size).toBe(used.length)
        const stopped = Promise.all(readers.map(({ entropy }) => entropy.stop()))
        await scheduler.waitFor(stopped)
      }),
      { numRuns: 100 },
    )
  })
})
