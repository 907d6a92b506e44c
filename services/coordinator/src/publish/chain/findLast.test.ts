import { expect, test } from 'vitest'
import { findLast } from './viemChain.ts'

test('finds the last of any, and asks for none that is much older', async () => {
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

test('none passes: the first of all, after few questions, however long the chain is', async () => {
  let questions = 0
  const newest = Number.MAX_SAFE_INTEGER
  const passes = async () => {
    questions += 1
    return false
  }
  expect(await findLast(newest, passes)).toBe(0)
  expect(questions).toBeLessThan(110)
})
