import { describe, expect, test } from 'vitest'
import { checkRandomHistories } from '../fuzz/randomHistories.ts'
import { checkPolicy } from './checkPolicy.ts'
import type { Policy, Schedule } from './policy.ts'
import { isDue, toDueMs } from './schedule.ts'

describe('when a nonce can be signed', () => {
  const schedule: Schedule = { startsAtMs: 1_000, everyS: 2, count: 3 }

  test('allows `count` nonces at the start, and `count` more with each period', () => {
    expect([0, 1, 2, 3, 5, 6, 300].map((nonce) => toDueMs(schedule, nonce))).toEqual([
      1_000n,
      1_000n,
      1_000n,
      3_000n,
      3_000n,
      5_000n,
      201_000n,
    ])
  })

  test('is exact for numbers up to 2^53', () => {
    const max = Number.MAX_SAFE_INTEGER
    const long = { startsAtMs: max, everyS: max, count: 1 }
    expect(toDueMs(long, max)).toBe(BigInt(max) + BigInt(max) * BigInt(max) * 1000n)
    expect(isDue(long, { nonce: 1, sampleMs: max })).toBe(false)
    expect(isDue(long, { nonce: 0, sampleMs: max })).toBe(true)
    // In doubles, this nonce would be due one period early.
    const early = { startsAtMs: 0, everyS: 1, count: 3 }
    expect(toDueMs(early, max)).toBe((BigInt(max) / 3n) * 1000n)
  })
})

describe('histories on a model of the chain', () => {
  // `npm run fuzz:policy` runs 10,000.
  test('no more transactions run than the schedule allows, and none before its start', () => {
    const { signed, executed, full } = checkRandomHistories({ runs: 300, seed: 2 })
    expect(signed).toBeGreaterThan(executed)
    expect(full).toBeGreaterThan(30)
  })

  test.each<[string, (schedule: Schedule) => Schedule]>([
    ['one more in each period', (schedule) => ({ ...schedule, count: schedule.count + 1 })],
    [
      'a start a period earlier',
      (schedule) => ({ ...schedule, startsAtMs: schedule.startsAtMs - 1000 * schedule.everyS }),
    ],
    ['a start a millisecond earlier', (schedule) => ({ ...schedule, startsAtMs: schedule.startsAtMs - 500 })],
    ['shorter periods', (schedule) => ({ ...schedule, everyS: schedule.everyS / 2 + 0.5 }) as Schedule],
  ])('the model finds an engine that allows %s', (_, change) => {
    const faulty: typeof checkPolicy = (policy, request) => {
      const schedule = change(policy.schedule as Schedule)
      return checkPolicy(
        { ...policy, schedule: { ...schedule, everyS: Math.floor(schedule.everyS) } } as Policy,
        request,
      )
    }
    expect(() => checkRandomHistories({ runs: 2_000, seed: 2, check: faulty })).toThrow(/allowed|before the start/)
  })

  test('the model detects an engine that ignores the schedule', () => {
    const faulty: typeof checkPolicy = ({ schedule, time, ...policy }, request) => checkPolicy(policy, request)
    expect(() => checkRandomHistories({ runs: 100, seed: 2, check: faulty })).toThrow(/allowed|before the start/)
  })
})
