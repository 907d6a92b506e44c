import { expect, test, vi } from 'vitest'
import { createKeyReader } from './createKeyReader.ts'

const [one, two] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]

test('keys are read every few seconds, once for many who ask, and kept while the database does not answer', async () => {
  let now = 0
  const findKeys = vi.fn(async () => [one])
  const read = createKeyReader({ events: { findKeys }, clock: { now: () => now } })
  expect(await Promise.all([read(), read(), read()])).toEqual([[one], [one], [one]])
  now = 4_999
  await read()
  expect(findKeys).toHaveBeenCalledTimes(1)
  now = 5_000
  findKeys.mockRejectedValueOnce(new Error('down'))
  expect(await read()).toEqual([one])
  now = 10_000
  findKeys.mockResolvedValueOnce([one, two])
  expect(await read()).toEqual([one, two])
})
