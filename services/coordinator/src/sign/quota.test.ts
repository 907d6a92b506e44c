import { expect, test } from 'vitest'
import { createFakeClock } from '../ports.fake.ts'
import { createSignQuota } from './quota.ts'

const HOUR_MS = 3_600_000

/** A wallet whose signatures a test counts, newest last. */
function setUp(perDay: number | undefined) {
  const clock = createFakeClock()
  const times: number[] = []
  let reads = 0
  const quota = createSignQuota({
    store: {
      async findSignedAt({ position }) {
        reads += 1
        return times.at(-position)
      },
    },
    clock,
    perDay,
  })
  const refusals: number[] = []
  const onRefused = (seconds: number) => void refusals.push(seconds)
  const sign = (walletId = 'w', ready: Promise<void> = Promise.resolve()) =>
    quota
      .run({ walletId, onRefused }, async () => {
        await ready
        times.push(clock.now())
        return 'signed'
      })
      .catch((error: { code: string }) => error.code)
  return { clock, sign, refusals, readCount: () => reads }
}

test('so many in any 24 hours; then it says when the next is free', async () => {
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

test('what is under way counts, so asking all at once gets no more', async () => {
  const { sign } = setUp(3)
  let finish = () => {}
  const ready = new Promise<void>((resolve) => (finish = resolve))
  const answers = Array.from({ length: 10 }, () => sign('w', ready))
  finish()
  const outcomes = await Promise.all(answers)
  expect(outcomes.filter((outcome) => outcome === 'signed')).toHaveLength(3)
  expect(outcomes.filter((outcome) => outcome === 'quota_spent')).toHaveLength(7)
})

test('coordinators know of each other only what is stored: together they may sign more at one moment', async () => {
  const times: number[] = []
  const clock = createFakeClock()
  const store = { findSignedAt: async ({ position }: { position: number }) => times.at(-position) }
  const quotas = [1, 2].map(() => createSignQuota({ store, clock, perDay: 1 }))
  const sign = async () => void times.push(clock.now())
  const asked = { walletId: 'w', digest: '0x1' as const, onRefused: () => {} }
  const ask = () => Promise.allSettled(quotas.map((quota) => quota.run(asked, sign)))
  expect((await ask()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  expect((await ask()).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('a signing that fails uses nothing up', async () => {
  const { sign } = setUp(1)
  expect(await sign('w', Promise.reject({ code: 'enclave_unavailable' }))).toBe('enclave_unavailable')
  expect(await sign()).toBe('signed')
})

test('without a quota the store is not asked', async () => {
  const { sign, readCount } = setUp(undefined)
  for (let count = 0; count < 5; count++) expect(await sign()).toBe('signed')
  expect(readCount()).toBe(0)
})
