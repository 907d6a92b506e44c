import { expect, test } from 'vitest'
import { createEndedLeaves } from './endedLeaves.ts'

test('recognizes an ended leaf, and no others of the same date', () => {
  const ended = createEndedLeaves(4)
  ended.add('a', 10)
  expect([ended.has('a', 10), ended.has('b', 10), ended.untilMs()]).toEqual([true, false, 0])
})

test('recognizes forgotten leaves by their date, and remembers the latest longest', () => {
  const ended = createEndedLeaves(4)
  for (const [leaf, dateMs] of Object.entries({ ahead: 9_000, a: 1, b: 2, c: 3, d: 4 })) ended.add(leaf, dateMs)
  expect(ended.untilMs()).toBe(3)
  expect(['a', 'b', 'c'].map((leaf, at) => ended.has(leaf, at + 1))).toEqual([true, true, true])
  expect([ended.has('d', 4), ended.has('e', 4), ended.has('ahead', 9_000), ended.has('e', 9_000)]).toEqual([
    ...[true, false],
    ...[true, false],
  ])
  // For any number of later ones.
  for (let dateMs = 5; dateMs < 1_000; dateMs++) ended.add(`${dateMs}`, dateMs)
  expect(ended.has('ahead', 9_000)).toBe(true)
  expect(ended.untilMs()).toBeLessThan(1_000)
  for (let dateMs = 5; dateMs < 1_000; dateMs++) expect(ended.has(`${dateMs}`, dateMs)).toBe(true)
})

test('after many of one date, the next statement is dated later', () => {
  const ended = createEndedLeaves(4)
  for (const leaf of ['a', 'b', 'c', 'd', 'e', 'f']) ended.add(leaf, 7)
  expect(ended.untilMs()).toBe(7)
  expect(ended.has('g', 7)).toBe(true)
})
