import { describe, expect, test } from 'vitest'
import { median, percentile } from './statistics.ts'

describe('median', () => {
  test.each([
    [[3], 3],
    [[10, 9, 1], 9],
    [[4, 1, 3, 2], 3],
    [[], Number.NaN],
  ])('of %j', (values, expected) => {
    expect(median(values)).toBe(expected)
  })
})

describe('percentile', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)

  test.each([
    [0.5, 50],
    [0.99, 99],
    [1, 100],
    [0, 1],
  ])('%d of 1 to 100', (share, expected) => {
    expect(percentile(hundred, share)).toBe(expected)
  })

  test('of few values is one of them: the largest, not none', () => {
    expect(percentile([7, 5], 0.99)).toBe(7)
    expect(percentile([], 0.99)).toBeNaN()
  })

  test('leaves the values in their order', () => {
    const values = [3, 1, 2]
    percentile(values, 0.5)
    expect(values).toEqual([3, 1, 2])
  })
})
