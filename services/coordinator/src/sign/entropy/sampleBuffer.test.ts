import { expect, test } from 'vitest'
import { createFakeClock, createFakeWitness } from '../../../test/ports.ts'
import { createSampleBuffer, type Sample } from './sampleBuffer.ts'

const FRESH_MS = 5_000
const MAX_AGE_MS = 60_000

function setUp(capacity = 10) {
  const clock = createFakeClock()
  const buffer = createSampleBuffer({ clock, maxAgeMs: MAX_AGE_MS, freshMs: FRESH_MS, capacity })
  /** Samples of these ages, numbered by `sequence`. */
  const toSamples = (...agesMs: number[]): Sample[] =>
    agesMs.map((ageMs, index) => ({ witness: createFakeWitness(index), timestampMs: clock.now() - ageMs }))
  const take = (count: number) => buffer.take(count).map(({ sequence }) => sequence)
  return { buffer, toSamples, take }
}

test('uses the oldest fresh ones first, in any order of arrival', () => {
  const { buffer, toSamples, take } = setUp()
  buffer.add(toSamples(0, 4_000, 2_000), { reserved: 0 })
  expect(buffer.countFresh()).toBe(3)
  expect(take(2)).toEqual([1, 2])
  expect(buffer.size).toBe(1)
})

test('then uses the reserve, newest first', () => {
  const { buffer, toSamples, take } = setUp()
  buffer.add(toSamples(FRESH_MS, FRESH_MS + 1, 20_000), { reserved: 0 })
  expect(buffer.countFresh()).toBe(1)
  expect(take(1)).toEqual([0])
  expect(take(1)).toEqual([1])
  expect(take(1)).toEqual([2])
})

test('drops the oldest above its capacity, but keeps as many as callers wait for', () => {
  const { buffer, toSamples, take } = setUp(2)
  buffer.add(toSamples(4, 3, 2, 1), { reserved: 1 })
  expect({ size: buffer.size, unused: buffer.unused }).toEqual({ size: 3, unused: 1 })
  expect(take(3)).toEqual([1, 2, 3])
})

test('counts the remaining samples as unused when cleared', () => {
  const { buffer, toSamples } = setUp()
  buffer.add(toSamples(0, 1), { reserved: 0 })
  buffer.clear()
  expect({ size: buffer.size, unused: buffer.unused }).toEqual({ size: 0, unused: 2 })
})
