import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { askInTurn } from './httpEnclave.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const options = { patienceMs: 500, isFinal: (error: unknown) => error instanceof RangeError }
const silent = () => new Promise<string>(() => {})
const fail = (error: Error) => () => Promise.reject(error)
const say = (text: string) => () => Promise.resolve(text)

test('one that answers is the only one that is asked', async () => {
  const second = vi.fn(say('second'))
  expect(await askInTurn([say('first'), second], options)).toBe('first')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(second).not.toHaveBeenCalled()
})

test('after a failure the next is asked at once', async () => {
  expect(await askInTurn([fail(new Error('gone')), say('second')], options)).toBe('second')
})

test('after a silence the next is asked, and not before', async () => {
  const second = vi.fn(say('second'))
  const onSilence = vi.fn()
  const answer = askInTurn([silent, second], { ...options, onSilence })
  await vi.advanceTimersByTimeAsync(499)
  expect(second).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(await answer).toBe('second')
  expect(onSilence).toHaveBeenCalledExactlyOnceWith(0)
})

test('one that answers others meanwhile is only slow, and is waited for', async () => {
  const second = vi.fn(say('second'))
  let isSilent = false
  const answer = askInTurn([silent, second], { ...options, isSilent: () => isSilent })
  await vi.advanceTimersByTimeAsync(2_000)
  expect(second).not.toHaveBeenCalled()
  isSilent = true
  await vi.advanceTimersByTimeAsync(500)
  expect(await answer).toBe('second')
})

test('one that was silent and answers first after all is listened to', async () => {
  const first = Promise.withResolvers<string>()
  const answer = askInTurn([() => first.promise, silent], options)
  await vi.advanceTimersByTimeAsync(600)
  first.resolve('first')
  expect(await answer).toBe('first')
})

test('a failure is not the end while another is under way', async () => {
  const first = Promise.withResolvers<string>()
  const answer = askInTurn([() => first.promise, fail(new Error('gone'))], options)
  await vi.advanceTimersByTimeAsync(500)
  first.resolve('first')
  expect(await answer).toBe('first')
})

test('when all have failed, the last failure counts', async () => {
  await expect(askInTurn([fail(new Error('one')), fail(new Error('two'))], options)).rejects.toThrow('two')
})

test('a failure that holds for all ends it, also when others are under way', async () => {
  const third = vi.fn(say('third'))
  const second = Promise.withResolvers<string>()
  const answer = askInTurn([silent, () => second.promise, third], options)
  await vi.advanceTimersByTimeAsync(500)
  second.reject(new RangeError('no'))
  await expect(answer).rejects.toThrow('no')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(third).not.toHaveBeenCalled()
})
