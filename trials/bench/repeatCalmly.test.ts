import { expect, test } from 'vitest'
import { describeCalm, repeatCalmly } from './repeatCalmly.ts'

/** Answers one after the other, then the last for ever. */
function createProbe(times: readonly number[]) {
  let next = 0
  return () => times[Math.min(next++, times.length - 1)] ?? Number.NaN
}

test('a calm machine is measured as often as asked', async () => {
  const calm = await repeatCalmly({ rounds: 3, isQuick: false }, async (round) => round, createProbe([10]))
  expect(calm).toEqual({ repeats: [0, 1, 2], discarded: 0, disturbed: 0 })
})

test('a repeat that was disturbed before or after is made again', async () => {
  const calm = await repeatCalmly(
    { rounds: 2, isQuick: false },
    async (round) => round,
    createProbe([10, 20, 10, 10, 20, 10, 10, 10, 10]),
  )
  expect(calm).toEqual({ repeats: [2, 3], discarded: 2, disturbed: 0 })
})

test('what looked calm beside a worse one is judged by the best', async () => {
  const calm = await repeatCalmly(
    { rounds: 1, isQuick: false },
    async (round) => round,
    createProbe([20, 20, 20, 10, 10]),
  )
  expect(calm.repeats).toEqual([0])
  const later = await repeatCalmly(
    { rounds: 2, isQuick: false },
    async (round) => round,
    createProbe([20, 20, 20, 10, 10, 10, 10]),
  )
  expect(later).toEqual({ repeats: [1, 2], discarded: 1, disturbed: 0 })
})

test('on a machine that is never calm it ends, with the calmest, and says so', async () => {
  const calm = await repeatCalmly(
    { rounds: 2, isQuick: false },
    async (round) => round,
    createProbe([10, 30, 30, 20, 20, 30]),
  )
  expect(calm).toEqual({ repeats: [1, 0], discarded: 2, disturbed: 2 })
  expect(describeCalm([calm, calm])).toBe(
    '4 disturbed ones discarded; 4 of those that count were disturbed by other work too',
  )
})

test('to try it out, a disturbed repeat is as good as any', async () => {
  const calm = await repeatCalmly({ rounds: 2, isQuick: true }, async (round) => round, createProbe([10, 30]))
  expect(calm).toEqual({ repeats: [0, 1], discarded: 0, disturbed: 2 })
})
