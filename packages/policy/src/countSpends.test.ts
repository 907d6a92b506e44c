import { describe, expect, test } from 'vitest'
import { checkRandomSpends } from '../fuzz/randomSpends.ts'
import { alice, token } from '../test/policies.ts'
import { type BudgetCounter, countSpends } from './countSpends.ts'
import type { Budget } from './policy.ts'

const DAY = 86_400
const asset = { chainId: 1, token }
const daily: Budget = { ...asset, limit: '10', periodS: DAY }
const total: Budget = { ...asset, limit: '15', periodS: 0 }
const coins: Budget = { chainId: 1, token: null, limit: '5', periodS: 3_600 }
const pay = (amount: bigint) => [{ ...asset, amount }]
const after = (...counters: BudgetCounter[]) => counters

describe('refuses', () => {
  test.each([
    ['one unit above the limit', [daily], after({ window: 1, spent: 10n }), pay(1n), DAY, 0, 0n],
    [
      'more than a limit of 2^256 - 1',
      [{ ...daily, limit: String(2n ** 256n - 1n) }],
      after(),
      pay(2n ** 256n),
      DAY,
      0,
      2n ** 256n - 1n,
    ],
    [
      'the second budget of the same asset',
      [daily, total],
      after({ window: 1, spent: 0n }, { window: 0, spent: 15n }),
      pay(1n),
      DAY,
      1,
      0n,
    ],
    ['the sum of two payments of one asset', [daily], after(), [...pay(6n), ...pay(5n)], DAY, 0, 10n],
    [
      'the fee of a payment',
      [daily, coins],
      after(),
      [...pay(1n), { chainId: 1, token: null, amount: 6n }],
      DAY,
      1,
      5n,
    ],
    [
      'the rest of an earlier window after the clock went back',
      [daily],
      after({ window: 2, spent: 10n }),
      pay(1n),
      DAY,
      0,
      0n,
    ],
  ] as const)('%s, and says what is left', (_, budgets, counters, spends, timeS, budget, left) => {
    expect(countSpends(budgets, counters, spends, timeS)).toEqual({ allowed: false, budget, left })
  })

  test.each([Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY, 2 ** 53])('the time %d', (timeS) => {
    expect(() => countSpends([daily], [], pay(1n), timeS)).toThrow(RangeError)
  })
})

describe('counts', () => {
  test('against every budget of the asset, and no other', () => {
    const others: Budget[] = [coins, { ...daily, chainId: 10 }, { ...daily, token: alice }]
    const verdict = countSpends(
      [daily, total, ...others],
      after({ window: 1, spent: 2n }, { window: 0, spent: 7n }),
      pay(8n),
      DAY,
    )
    expect(verdict).toEqual({
      allowed: true,
      changes: [
        { budget: 0, window: 1, before: 2n, after: 10n },
        { budget: 1, window: 0, before: 7n, after: 15n },
      ],
      counters: [{ window: 1, spent: 10n }, { window: 0, spent: 15n }, ...others.map(() => ({ window: 0, spent: 0n }))],
    })
  })

  test('from 0 in the first second of a window', () => {
    const counters = after({ window: 1, spent: 10n })
    expect(countSpends([daily], counters, pay(1n), 2 * DAY - 1)).toMatchObject({ allowed: false })
    expect(countSpends([daily], counters, pay(10n), 2 * DAY)).toMatchObject({
      changes: [{ budget: 0, window: 2, before: 0n, after: 10n }],
    })
  })

  test('into the newest window after the clock went back', () => {
    expect(countSpends([daily], after({ window: 5, spent: 4n }), pay(6n), 3 * DAY)).toMatchObject({
      changes: [{ budget: 0, window: 5, before: 4n, after: 10n }],
    })
  })

  test('nothing as a payment of 0, also when nothing is left', () => {
    expect(countSpends([daily], after({ window: 1, spent: 10n }), pay(0n), DAY)).toMatchObject({
      changes: [{ budget: 0, window: 1, before: 10n, after: 10n }],
    })
  })

  test('without changing the counters that it was given', () => {
    const counters = after({ window: 1, spent: 2n })
    countSpends([daily], counters, pay(8n), DAY)
    expect(counters).toEqual([{ window: 1, spent: 2n }])
  })
})

describe('random histories', () => {
  // `npm run fuzz:budgets` runs 1,000,000.
  test('2,000 give the model’s answers and sign no more than the limits (seed 2)', () => {
    const { signed, refused, full } = checkRandomSpends({ runs: 2_000, seed: 2 })
    expect(Math.min(signed, refused)).toBeGreaterThan(3_000)
    expect(full).toBeGreaterThan(1_000)
  })

  test.each<[string, typeof countSpends]>([
    [
      'allows one unit more',
      (budgets, ...rest) =>
        countSpends(
          budgets.map((one) => ({ ...one, limit: String(BigInt(one.limit) + 1n) })),
          ...rest,
        ),
    ],
    [
      'starts a window again after the clock went back',
      (budgets, counters, spends, timeS) => {
        const earlier = counters.map((one, index) => {
          const { periodS = 0 } = budgets[index] ?? {}
          return periodS > 0 && Math.floor(timeS / periodS) < one.window ? { window: 0, spent: 0n } : one
        })
        return countSpends(budgets, earlier, spends, timeS)
      },
    ],
    [
      'counts only the first payment',
      (budgets, counters, spends, timeS) => countSpends(budgets, counters, spends.slice(0, 1), timeS),
    ],
    ['forgets the counters', (budgets, _, spends, timeS) => countSpends(budgets, [], spends, timeS)],
    [
      'ignores the last budget',
      (budgets, counters, spends, timeS) => {
        const last = { chainId: 1, token: alice, limit: '0', periodS: 0 }
        return countSpends([...budgets.slice(0, -1), last], counters, spends, timeS)
      },
    ],
  ])('the model detects an engine that %s', (_, count) => {
    expect(() => checkRandomSpends({ runs: 2_000, seed: 2, count })).toThrow(/overspent|differs/)
  })
})
