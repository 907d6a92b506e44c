import type { AppendedEntries } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { mergeAppended } from './appended.ts'

const ENTRIES = ['a', 'b', 'c', 'd', 'e', 'f']

/** Entries of one log, with the checkpoint after them. */
const range = (from: number, to: number, changes: Partial<AppendedEntries> = {}): AppendedEntries => ({
  origin: 'log.example',
  from,
  entries: ENTRIES.slice(from, to),
  states: [],
  checkpoint: `of ${to}`,
  ...changes,
})

test.each([
  ['right behind it', range(0, 2), range(2, 5), range(0, 5)],
  ['that overlaps', range(0, 4), range(2, 6), range(0, 6)],
  ['that is the same', range(1, 4), range(1, 4), range(1, 4)],
  ['that is a part of it', range(0, 5), range(1, 3), range(0, 5)],
  ['without entries', range(0, 3), range(3, 3), range(0, 3)],
])('one %s is merged', (_, first, second, merged) => {
  expect(mergeAppended(first, second)).toEqual(merged)
})

test.each([
  ['with a gap before it', range(0, 2), range(3, 5)],
  ['that begins before it', range(2, 4), range(1, 5)],
  ['of another log', range(0, 2), range(2, 4, { origin: 'other.example' })],
  ['with another entry in what both have', range(0, 3), range(1, 5, { entries: ['b', 'x', 'd', 'e'] })],
  ['with another checkpoint of the same size', range(0, 4), range(2, 4, { checkpoint: 'another' })],
])('one %s is not', (_, first, second) => {
  expect(mergeAppended(first, second)).toBeUndefined()
})

test('the states of both are merged, in their order', () => {
  const [older, newer] = [[{ row: 0, state: 'x' }], [{ row: 0, state: 'y' }]]
  expect(mergeAppended(range(0, 2, { states: older }), range(1, 4, { states: newer }))?.states).toEqual([
    ...older,
    ...newer,
  ])
})
