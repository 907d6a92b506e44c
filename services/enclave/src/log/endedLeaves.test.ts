import { expect, test } from 'vitest'
import { createEndedLeaves } from './endedLeaves.ts'

test('what ended is told by its leaf, and others of the same date are not', () => {
  const ended = createEndedLeaves(4)
  ended.add('a', 10)
  expect([ended.has('a', 10), ended.has('b', 10), ended.untilMs()]).toEqual([true, false, 0])
})

test('what is not remembered any more is told by its date, and the latest are remembered longest', () => {
  const ended = createEndedLeaves(4)
  for (const [leaf, dateMs] of Object.entries({ ahead: 9_000, a: 1, b: 2, c: 3, d: 4 })) ended.add(leaf, dateMs)
  expect(ended.untilMs()).toBe(3)
  expect(['a', 'b', 'c'].map((leaf, at) => ended.has(leaf, at + 1))).toEqual([true, true, true])
  expect([ended.has('d', 4), ended.has('e', 4), ended.has('ahead', 9_000), ended.has('e', 9_000)]).toEqual([
    ...[true, false],
    ...[true, false],
  ])
  // However many come after it.
  for (let dateMs = 5; dateMs < 1_000; dateMs++) ended.add(`${dateMs}`, dateMs)
  expect(ended.has('ahead', 9_000)).toBe(true)
  expect(ended.untilMs()).toBeLessThan(1_000)
  for (let dateMs = 5; dateMs < 1_000; dateMs++) expect(ended.has(`${dateMs}`, dateMs)).toBe(true)
})

test('many of one date: what comes next is dated after it', () => {
  const ended = createEndedLeaves(4)
  for (const leaf of ['a', 'b', 'c', 'd', 'e', 'f']) ended.add(leaf, 7)
  expect(ended.untilMs()).toBe(7)
  expect(ended.has('g', 7)).toBe(true)
})
