import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withinTimeLimit } from './withinTimeLimit.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = () => new Promise<never>(() => {})

test('work in time gives its result, and its signal stays quiet', async () => {
  let seen: AbortSignal | undefined
  const result = await withinTimeLimit(1000, async (signal) => {
    seen = signal
    return 'done'
  })
  expect(result).toBe('done')
  vi.advanceTimersByTime(10_000)
  expect(seen?.aborted).toBe(false)
})

test('work that hangs ends with the error of the caller, and its signal gives it as the reason', async () => {
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

test('without an error of the caller it is a TimeoutError', async () => {
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

test('work that throws before it returns a promise fails alike', async () => {
  const failing = withinTimeLimit(1000, () => {
    throw new Error('bad')
  })
  await expect(failing).rejects.toThrow('bad')
  expect(vi.getTimerCount()).toBe(0)
})

test('what late work gives is dropped, a failure included', async () => {
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

test('no timer is left behind, whether the work succeeds or fails', async () => {
  await withinTimeLimit(1000, async () => 'done')
  await withinTimeLimit(1000, () => Promise.reject(new Error('bad'))).catch(() => {})
  expect(vi.getTimerCount()).toBe(0)
})

test('an abort of the caller ends it at once with its reason, and leaves no timer and no listener', async () => {
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

test('with a caller that aborted before, the work does not begin', async () => {
  const work = vi.fn(never)
  await expect(withinTimeLimit(1000, work, { signal: AbortSignal.abort('before') })).rejects.toBe('before')
  expect(work).not.toHaveBeenCalled()
})
