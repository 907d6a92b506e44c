import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { codeOf } from './evidence.fake.ts'
import { withinTimeLimit } from './withinTimeLimit.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = () => new Promise<never>(() => {})

test('a task in time gives its result, and its signal stays quiet', async () => {
  let seen: AbortSignal | undefined
  const result = await withinTimeLimit(1000, async (signal) => {
    seen = signal
    return 'done'
  })
  expect(result).toBe('done')
  expect(seen?.aborted).toBe(false)
})

test('a task that hangs gives evidence_timeout, and its signal says why', async () => {
  let seen: AbortSignal | undefined
  const code = codeOf(
    withinTimeLimit(1000, (signal) => {
      seen = signal
      return never()
    }),
  )
  vi.advanceTimersByTime(999)
  expect(seen?.aborted).toBe(false)
  vi.advanceTimersByTime(1)
  expect(await code).toBe('evidence_timeout')
  expect(seen?.reason).toMatchObject({ code: 'evidence_timeout', details: 'after 1000 ms' })
})

test('no timer is left behind, whether the task succeeds or fails', async () => {
  await withinTimeLimit(1000, async () => 'done')
  await codeOf(withinTimeLimit(1000, () => Promise.reject(new Error('bad'))))
  expect(vi.getTimerCount()).toBe(0)
})

test('a task that fails in time gives its own error', async () => {
  await expect(withinTimeLimit(1000, () => Promise.reject(new Error('bad')))).rejects.toThrow('bad')
})
