import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { askInTurn } from './httpEnclave.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const options = { patienceMs: 500, isFinal: (error: unknown) => error instanceof RangeError }
const silent = () => new Promise<string>(() => {})
const fail = (error: Error) => () => Promise.reject(error)
const say = (text: string) => () => Promise.resolve(text)

test('calls only the first one if it answers', async () => {
  const second = vi.fn(say('second'))
  expect(await askInTurn([say('first'), second], options)).toBe('first')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(second).not.toHaveBeenCalled()
})

test('calls the next one immediately after a failure', async () => {
  expect(await askInTurn([fail(new Error('gone')), say('second')], options)).toBe('second')
})

test('calls the next one after a timeout, not earlier', async () => {
  const second = vi.fn(say('second'))
  const onSilence = vi.fn()
  const answer = askInTurn([silent, second], { ...options, onSilence })
  await vi.advanceTimersByTimeAsync(499)
  expect(second).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(await answer).toBe('second')
  expect(onSilence).toHaveBeenCalledExactlyOnceWith(0)
})

test('waits for one that answers other calls meanwhile, because it is only slow', async () => {
  const second = vi.fn(say('second'))
  let isSilent = false
  const answer = askInTurn([silent, second], { ...options, isSilent: () => isSilent })
  await vi.advanceTimersByTimeAsync(2_000)
  expect(second).not.toHaveBeenCalled()
  isSilent = true
  await vi.advanceTimersByTimeAsync(500)
  expect(await answer).toBe('second')
})

test('uses a late answer if it comes first', async () => {
  const first = Promise.withResolvers<string>()
  const answer = askInTurn([() => first.promise, silent], options)
  await vi.advanceTimersByTimeAsync(600)
  first.resolve('first')
  expect(await answer).toBe('first')
})

test('a failure does not end the call while another one is running', async () => {
  const first = Promise.withResolvers<string>()
  const answer = askInTurn([() => first.promise, fail(new Error('gone'))], options)
  await vi.advanceTimersByTimeAsync(500)
  first.resolve('first')
  expect(await answer).toBe('first')
})

test('returns the last failure if all have failed', async () => {
  await expect(askInTurn([fail(new Error('one')), fail(new Error('two'))], options)).rejects.toThrow('two')
})

test('a failure that applies to all ends the call even while others are running', async () => {
  const third = vi.fn(say('third'))
  const second = Promise.withResolvers<string>()
  const answer = askInTurn([silent, () => second.promise, third], options)
  await vi.advanceTimersByTimeAsync(500)
  second.reject(new RangeError('no'))
  await expect(answer).rejects.toThrow('no')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(third).not.toHaveBeenCalled()
})
