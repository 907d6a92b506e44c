import type { Hex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createFakeClock } from '../../test/ports.ts'
import { createSignQuota } from './quota.ts'

const HOUR_MS = 3_600_000
const toDigest = (number: number): Hex => `0x${number.toString(16).padStart(64, '0')}`
type Asked = { userId: string; digest: Hex; ready: Promise<void> }

/** A wallet whose signatures the test counts, newest last. A digest is signed once. */
function setUp(perDay: number | undefined) {
  const clock = createFakeClock()
  const times: number[] = []
  const signed = new Set<Hex>()
  let reads = 0
  let digests = 0
  let reading = Promise.withResolvers<void>()
  reading.resolve()
  const quota = createSignQuota({
    store: {
      async findSignedAt({ position }) {
        reads += 1
        await reading.promise
        return times.at(-position)
      },
    },
    clock,
    perDay,
  })
  const refusals: number[] = []
  const onRefused = (seconds: number) => void refusals.push(seconds)
  const sign = ({ userId = 'u', digest = toDigest(digests++), ready = Promise.resolve() }: Partial<Asked> = {}) =>
    quota
      .run({ userId, walletId: `wallet of ${userId}`, digest, onRefused }, async () => {
        await ready
        if (!signed.has(digest)) times.push(clock.now())
        signed.add(digest)
        return 'signed'
      })
      .catch((error: { code: string }) => error.code)
  /** The store answers only when the result is called. */
  function holdReads() {
    reading = Promise.withResolvers()
    return reading.resolve
  }
  return { clock, sign, refusals, holdReads, readCount: () => reads, signedCount: () => times.length }
}

test('allows the quota in any 24 hours, then returns when the next signature is possible', async () => {
  const { clock, sign, refusals } = setUp(2)
  expect(await sign()).toBe('signed')
  clock.advance(HOUR_MS)
  expect(await sign()).toBe('signed')
  expect(await sign()).toBe('quota_spent')
  expect(refusals).toEqual([23 * 3600])
  clock.advance(23 * HOUR_MS - 1)
  expect(await sign()).toBe('quota_spent')
  clock.advance(1)
  expect(await sign()).toBe('signed')
  expect(await sign()).toBe('quota_spent')
})

test('counts pending signatures, so concurrent calls get no more', async () => {
  const { sign } = setUp(3)
  let finish = () => {}
  const ready = new Promise<void>((resolve) => (finish = resolve))
  const answers = Array.from({ length: 10 }, () => sign({ ready }))
  finish()
  const outcomes = await Promise.all(answers)
  expect(outcomes.filter((outcome) => outcome === 'signed')).toHaveLength(3)
  expect(outcomes.filter((outcome) => outcome === 'quota_spent')).toHaveLength(7)
})

test('coordinators only count stored signatures, so together they may exceed the quota briefly', async () => {
  const times: number[] = []
  const clock = createFakeClock()
  const store = { findSignedAt: async ({ position }: { position: number }) => times.at(-position) }
  const quotas = [1, 2].map(() => createSignQuota({ store, clock, perDay: 1 }))
  const sign = async () => void times.push(clock.now())
  const asked = { userId: 'u', walletId: 'w', digest: '0x1' as const, onRefused: () => {} }
  const ask = () => Promise.allSettled(quotas.map((quota) => quota.run(asked, sign)))
  expect((await ask()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  expect((await ask()).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('a failed signing does not count', async () => {
  const { sign } = setUp(1)
  expect(await sign({ ready: Promise.reject({ code: 'enclave_unavailable' }) })).toBe('enclave_unavailable')
  expect(await sign()).toBe('signed')
})

test('counts concurrent requests for the same signature once', async () => {
  const { sign, refusals, signedCount } = setUp(2)
  expect(await sign()).toBe('signed')
  const digest = toDigest(77)
  expect(await Promise.all([sign({ digest }), sign({ digest }), sign({ digest })])).toEqual(Array(3).fill('signed'))
  expect([signedCount(), refusals]).toEqual([2, []])
  expect(await Promise.all([sign({ digest: toDigest(78) }), sign({ digest: toDigest(78) })])).toEqual(
    Array(2).fill('quota_spent'),
  )
  expect([signedCount(), refusals]).toEqual([2, [86_400, 86_400]])
})

test('does not count a signature twice that is stored during the next check', async () => {
  const { sign, holdReads } = setUp(2)
  const first = Promise.withResolvers<void>()
  const earlier = sign({ ready: first.promise })
  await new Promise((resolve) => setImmediate(resolve))
  const read = holdReads()
  const later = sign()
  first.resolve()
  expect(await earlier).toBe('signed')
  read()
  expect(await later).toBe('signed')
  expect(await sign()).toBe('quota_spent')
})

test('a failed signing frees its place for the first waiting caller', async () => {
  const { sign, signedCount } = setUp(1)
  const first = Promise.withResolvers<void>()
  const answers = [sign({ ready: first.promise }), sign(), sign()]
  first.reject({ code: 'enclave_unavailable' })
  expect(await Promise.all(answers)).toEqual(['enclave_unavailable', 'signed', 'quota_spent'])
  expect(signedCount()).toBe(1)
})

test('a failing store does not affect later calls', async () => {
  let isDown = true
  const store = { findSignedAt: async () => (isDown ? Promise.reject({ code: 'database_unavailable' }) : undefined) }
  const quota = createSignQuota({ store, clock: createFakeClock(), perDay: 1 })
  const run = (digest: Hex) =>
    quota
      .run({ userId: 'u', walletId: 'w', digest, onRefused() {} }, async () => 'signed')
      .catch((error: { code: string }) => error.code)
  expect(await Promise.all([run('0x1'), run('0x1'), run('0x2')])).toEqual(Array(3).fill('database_unavailable'))
  isDown = false
  expect(await run('0x3')).toBe('signed')
})

test('does not query the store without a quota', async () => {
  const { sign, readCount } = setUp(undefined)
  for (let count = 0; count < 5; count++) expect(await sign()).toBe('signed')
  expect(readCount()).toBe(0)
})
