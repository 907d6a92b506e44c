import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withinTimeLimit } from './withinTimeLimit.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = () => new Promise<never>(() => {})

test('returns the result of work in time, without aborting its signal', async () => {
  let seen: AbortSignal | undefined
  const result = await withinTimeLimit(1000, async (signal) => {
    seen = signal
    return 'done'
  })
  expect(result).toBe('done')
  vi.advanceTimersByTime(10_000)
  expect(seen?.aborted).toBe(false)
})

test('work that hangs ends with the caller’s error, and its signal has it as the reason', async () => {
  let seen: AbortSignal | undefined
  const late = new Error('late')
  const hang = (signal: AbortSignal) => {
    seen = signal
    return never()
  }
  const outcome = withinTimeLimit(1000, hang, { createError: () => late }).catch((error) => error)
  await vi.advanceTimersByTimeAsync(999)
  expect(seen?.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await outcome).toBe(late)
  expect(seen?.reason).toBe(late)
})

test('without a caller’s error, it is a TimeoutError', async () => {
  const outcome = withinTimeLimit(1000, never).catch((error) => error)
  vi.advanceTimersByTime(1000)
  expect(await outcome).toMatchObject({ name: 'TimeoutError' })
})

test('work that fails in time gives its own error, and its signal is aborted', async () => {
  let seen: AbortSignal | undefined
  const failing = withinTimeLimit(1000, (signal) => {
    seen = signal
    return Promise.reject(new Error('bad'))
  })
  await expect(failing).rejects.toThrow('bad')
  expect(seen?.aborted).toBe(true)
})

test('work that throws synchronously rejects too', async () => {
  const failing = withinTimeLimit(1000, () => {
    throw new Error('bad')
  })
  await expect(failing).rejects.toThrow('bad')
  expect(vi.getTimerCount()).toBe(0)
})

test('drops late results and late failures', async () => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  try {
    const { promise, reject } = Promise.withResolvers<never>()
    const outcome = withinTimeLimit(1000, () => promise).catch((error) => error)
    vi.advanceTimersByTime(1000)
    expect(await outcome).toMatchObject({ name: 'TimeoutError' })
    reject(new Error('too late'))
    vi.useRealTimers()
    await new Promise(setImmediate)
    expect(unhandled).not.toHaveBeenCalled()
  } finally {
    process.off('unhandledRejection', unhandled)
  }
})

test('leaves no timer, whether the work succeeds or fails', async () => {
  await withinTimeLimit(1000, async () => 'done')
  await withinTimeLimit(1000, () => Promise.reject(new Error('bad'))).catch(() => {})
  expect(vi.getTimerCount()).toBe(0)
})

test('ends at once with the caller’s reason when the caller aborts, and leaves no timer and no listener', async () => {
  const caller = new AbortController()
  const removed = vi.spyOn(caller.signal, 'removeEventListener')
  let seen: AbortSignal | undefined
  const hang = (signal: AbortSignal) => {
    seen = signal
    return never()
  }
  const outcome = withinTimeLimit(1000, hang, { signal: caller.signal }).catch((error) => error)
  caller.abort('enough')
  expect(seen?.aborted).toBe(true)
  expect(await outcome).toBe('enough')
  expect(seen?.reason).toBe('enough')
  expect(vi.getTimerCount()).toBe(0)
  expect(removed).toHaveBeenCalledOnce()
})

test('does not start the work if the caller has already aborted', async () => {
  const work = vi.fn(never)
  await expect(withinTimeLimit(1000, work, { signal: AbortSignal.abort('before') })).rejects.toBe('before')
  expect(work).not.toHaveBeenCalled()
})
