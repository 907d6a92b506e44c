import { describe, expect, test } from 'vitest'
import { checkCounts } from './checkCounts.ts'

type Item = [budget: number, window: number, before: number, after: number]

const count = (
  sequence: number,
  items: Item[],
  change: { isRepeated?: boolean; digest?: string; time?: number } = {},
) => {
  const { isRepeated = false, digest = `0x${sequence}`, time = 100 } = change
  const counted = items.map(([budget, window, before, after]) => ({
    budget,
    window,
    before: String(before),
    after: String(after),
  }))
  const facts = { keyId: '', leaf: '', signedAtMs: 0, log: undefined }
  return { ...facts, txHash: digest, counted: { digest, budget: { time, sequence, isRepeated, items: counted } } }
}
const kindsOf = (...counts: ReturnType<typeof count>[]) => checkCounts(counts).map(({ kind }) => kind)

describe('counts that fit each other', () => {
  test('follow each other within a window, and begin again in the next', () => {
    const counts = [
      count(1, [[0, 5, 0, 3]]),
      count(2, [[0, 5, 3, 10]]),
      count(3, [
        [0, 6, 0, 10],
        [1, 0, 0, 10],
      ]),
    ]
    expect(kindsOf(...counts)).toEqual([])
    expect(kindsOf(...counts.toReversed())).toEqual([])
  })

  test('may be the same count twice, for the same content', () => {
    expect(kindsOf(count(1, [[0, 5, 0, 3]]), count(1, [[0, 5, 0, 3]], { isRepeated: true }))).toEqual([])
  })

  test('may leave out changes that no transaction shows', () => {
    const findings = checkCounts([count(2, [[0, 5, 1, 3]]), count(5, [[0, 5, 7, 9]])])
    expect(findings).toEqual([{ kind: 'budget-not-shown', count: 3 }])
  })
})

describe('a contradiction is', () => {
  test.each([
    ['one sequence number for two payments', count(1, [[0, 5, 0, 3]], { digest: '0xff', isRepeated: true })],
    ['one sequence number with other amounts', count(1, [[0, 5, 0, 4]], { digest: '0x1' })],
    ['one sequence number with another time', count(1, [[0, 5, 0, 3]], { digest: '0x1', time: 101 })],
    ['an amount that was counted before', count(2, [[0, 5, 2, 4]])],
    ['a window that goes back', count(2, [[0, 4, 3, 4]])],
  ])('%s', (_, other) => {
    expect(kindsOf(count(1, [[0, 5, 0, 3]]), other)).toEqual(['budget-contradicts'])
  })

  test('not an amount of another budget', () => {
    expect(kindsOf(count(1, [[0, 5, 0, 3]]), count(2, [[1, 5, 0, 3]]))).toEqual([])
  })
})
