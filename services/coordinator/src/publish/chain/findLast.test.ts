import { expect, test } from 'vitest'
import { findLast } from './viemChain.ts'

test('finds the last match without asking for much older numbers', async () => {
  for (const newest of [0, 1, 2, 3, 7, 64, 100]) {
    for (let last = 0; last <= newest; last++) {
      const asked: number[] = []
      const found = await findLast(newest, async (number) => {
        asked.push(number)
        return number <= last
      })
      expect(found).toBe(last)
      expect(Math.min(newest, ...asked)).toBeGreaterThanOrEqual(newest - 2 * (newest - last) - 1)
    }
  }
})

test('returns 0 after few requests if nothing passes', async () => {
  let questions = 0
  const newest = Number.MAX_SAFE_INTEGER
  const passes = async () => {
    questions += 1
    return false
  }
  expect(await findLast(newest, passes)).toBe(0)
  expect(questions).toBeLessThan(110)
})
