import type { Budget, Spend } from '@countersign/policy'
import { expect, test } from 'vitest'
import { createBudgetTable } from './budgetTable.ts'

const DAY_S = 86_400
const NOW_S = 20_000 * DAY_S + 100
const TOKEN = `0x${'ab'.repeat(20)}` as const
const ORIGIN = 'log.example/a'
const alice = 'a1'.repeat(16)
const bob = 'b2'.repeat(16)
const daily: Budget = { chainId: 1, token: TOKEN, limit: '100', periodS: DAY_S }
const forLife: Budget = { chainId: 1, token: TOKEN, limit: '150', periodS: 0 }
const coin: Budget = { chainId: 1, token: null, limit: '10', periodS: 0 }
const budgets = [daily, forLife, coin]

let digests = 0
const pay = (amount: bigint, changes: object = {}) => ({
  keyId: alice,
  digest: String(digests++),
  budgets,
  spends: [{ chainId: 1, token: TOKEN, amount }] as Spend[],
  timeS: NOW_S,
  nowS: NOW_S,
  elapsedMs: 0,
  ...changes,
})

function createTable(states: readonly string[] = []) {
  let count = 0
  const table = createBudgetTable({ random: (length) => new Uint8Array(length).fill(count++) })
  expect(table.start(ORIGIN, states)).toBe(true)
  return table
}

test('counts every budget of the asset, and refuses what is above one of them', () => {
  const table = createTable()
  expect(table.count(pay(60n))).toEqual({
    time: NOW_S,
    sequence: 1,
    isRepeated: false,
    items: [
      { budget: 0, window: 20_000, before: '0', after: '60' },
      { budget: 1, window: 0, before: '0', after: '60' },
    ],
  })
  expect(table.count(pay(41n))).toEqual({ error: 'budget_exceeded', budget: 0, left: '40' })
  expect(table.count(pay(40n))).toMatchObject({ sequence: 2 })
  const tomorrow = { timeS: NOW_S + DAY_S, nowS: NOW_S + DAY_S }
  expect(table.count(pay(51n, tomorrow))).toEqual({ error: 'budget_exceeded', budget: 1, left: '50' })
  expect(table.count(pay(50n, tomorrow))).toMatchObject({ items: [{ before: '0', after: '50' }, { after: '150' }] })
  expect(table.count(pay(1n, { keyId: bob }))).toMatchObject({ sequence: 1 })
})

test('a window never goes back', () => {
  const table = createTable()
  table.count(pay(100n))
  const yesterday = { timeS: NOW_S - DAY_S, nowS: NOW_S - DAY_S }
  expect(table.count(pay(1n, yesterday))).toEqual({ error: 'budget_exceeded', budget: 0, left: '0' })
})

test.each([
  ['unknown', { timeS: undefined }],
  ['more than a minute behind', { timeS: NOW_S - 61 }],
])('refuses a budget with a period while the time is %s, and counts nothing', (_, change) => {
  const table = createTable()
  expect(table.count(pay(1n, change))).toEqual({ error: 'budget_time' })
  expect(table.takeChanges()).toEqual([])
  // A budget for the vault's life needs no time.
  const spends: Spend[] = [{ chainId: 1, token: null, amount: 1n }]
  expect(table.count(pay(0n, { ...change, spends }))).toMatchObject({ time: null, items: [{ budget: 2 }] })
})

test('counts equal requests once within 10 minutes, even at the limit', () => {
  const table = createTable()
  const same = pay(100n)
  const first = table.count(same)
  const repeats = Array.from({ length: 255 }, () => table.count(same))
  for (const repeat of repeats) expect(repeat).toEqual({ ...first, isRepeated: true })
  expect(table.takeChanges()).toHaveLength(1)
  expect(table.count({ ...same, elapsedMs: 599_999 })).toMatchObject({ isRepeated: true })
  expect(table.count({ ...same, elapsedMs: 600_000 })).toMatchObject({ error: 'budget_exceeded' })
})

test('of 256 different requests, counts exactly the limit', () => {
  const table = createTable()
  const verdicts = Array.from({ length: 256 }, () => table.count(pay(1n)))
  expect(verdicts.filter((verdict) => !('error' in verdict))).toHaveLength(100)
})

test('continues from its states, with the same limits and revoked keys', () => {
  const before = createTable()
  before.count(pay(60n))
  before.revoke(bob, 31, budgets.length)
  const changes = before.takeChanges()
  expect(changes.map(({ row }) => row)).toEqual([0, 1])
  const after = createTable(changes.map(({ state }) => state))
  expect(after.count(pay(41n))).toEqual({ error: 'budget_exceeded', budget: 0, left: '40' })
  expect(after.count(pay(40n))).toMatchObject({ sequence: 2 })
  expect([after.isRevoked(bob, 31), after.isRevoked(bob, 30), after.isRevoked(alice, 31)]).toEqual([true, false, false])
})

test('a revocation keeps what was spent, and counts as a change', () => {
  const table = createTable()
  table.count(pay(60n))
  expect(table.revoke(alice, 0, budgets.length)).toBe(2)
  expect(table.count(pay(41n))).toMatchObject({ error: 'budget_exceeded' })
})

test.each([
  ['a malformed state', ['00']],
  ['two states of one vault', [0, 1].map(() => `${alice}${'00'.repeat(28)}`)],
])('refuses to start with %s', (_, states) => {
  expect(createBudgetTable({ random: () => new Uint8Array(16) }).start(ORIGIN, states)).toBe(false)
})

test('keeps 1,024 rows for revocations', () => {
  const toState = (_: unknown, index: number) => `${index.toString(16).padStart(32, '0')}${'00'.repeat(28)}`
  const table = createTable(Array.from({ length: 130_048 }, toState))
  expect(table.count(pay(1n))).toEqual({ error: 'budget_unavailable' })
  expect(table.revoke(alice, 0, 3)).toBe(1)
  expect(table.count(pay(1n))).toMatchObject({ sequence: 2 })
})

test('belongs to the log that it was started for', () => {
  const table = createTable()
  table.count(pay(1n))
  expect([table.isOf(ORIGIN), table.isOf('log.example/b'), table.isOf(undefined)]).toEqual([true, false, false])
  table.start('log.example/b', [])
  expect([table.isOf(ORIGIN), table.count(pay(100n))]).toMatchObject([false, { sequence: 1 }])
})
