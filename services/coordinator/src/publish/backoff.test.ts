import { describe, expect, test } from 'vitest'
import { toBackoffMs } from './repeat.ts'

const ALMOST_ONE = 1 - Number.EPSILON

describe('toBackoffMs', () => {
  test.each([
    [0, 1_000],
    [1, 2_000],
    [5, 32_000],
    [8, 256_000],
    [9, 300_000],
    [40, 300_000],
    [5_000, 300_000],
  ])('after %d failures, at most %d ms', (attempt, most) => {
    expect(toBackoffMs({ attempt, random: () => ALMOST_ONE })).toBeCloseTo(most, 3)
    expect(toBackoffMs({ attempt, random: () => 0.5 })).toBe(most / 2)
  })

  test.each([0, 3, 5_000])('after %d failures, never under 250 ms', (attempt) => {
    expect(toBackoffMs({ attempt, random: () => 0 })).toBe(250)
    expect(toBackoffMs({ attempt, random: () => 1e-9 })).toBe(250)
  })
})
