import { expect, test, vi } from 'vitest'
import { watchKeys } from './warner.ts'

const [one, two] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]

/** Runs scheduled turns on demand. */
function createTurns() {
  const tasks: (() => void)[] = []
  const schedule = (task: () => void) => {
    tasks.push(task)
    return () => void tasks.splice(tasks.indexOf(task), 1)
  }
  return { schedule, tasks, next: () => tasks.shift()?.() }
}

test('keeps the last keys while the database hangs or fails', async () => {
  const { schedule, tasks, next } = createTurns()
  const findKeys = vi.fn(async () => [one])
  const { current, stop } = await watchKeys({ events: { findKeys }, schedule })
  expect(current()).toEqual([one])
  findKeys.mockRejectedValueOnce(new Error('down'))
  next()
  await expect.poll(() => tasks).toHaveLength(1)
  expect(current()).toEqual([one])
  const slow = Promise.withResolvers<Uint8Array<ArrayBuffer>[]>()
  findKeys.mockReturnValueOnce(slow.promise)
  next()
  expect([current(), tasks.length]).toEqual([[one], 0])
  slow.resolve([one, two])
  await expect.poll(() => current()).toEqual([one, two])
  stop()
  expect(tasks).toEqual([])
})

test('has no keys before the first read', async () => {
  const { schedule, next } = createTurns()
  const findKeys = vi.fn<() => Promise<Uint8Array[]>>().mockRejectedValueOnce(new Error('down')).mockResolvedValue([])
  const { current } = await watchKeys({ events: { findKeys }, schedule })
  expect(current()).toBeUndefined()
  next()
  await expect.poll(() => current()).toEqual([])
})
