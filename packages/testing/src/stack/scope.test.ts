import { expect, test } from 'vitest'
import { allStarted, startInScope, withScope } from './scope.ts'

test('ends all parts even if the task or another part fails', async () => {
  const ended: string[] = []
  const failing = withScope(async ({ add }) => {
    add('one', async (name) => void ended.push(name))
    add('two', () => Promise.reject(new Error('does not end')))
  })
  await expect(failing).rejects.toThrow('does not end')
  const broken = withScope(async ({ add }) => {
    add('three', async (name) => void ended.push(name))
    throw new Error('the task')
  })
  await expect(broken).rejects.toThrow('the task')
  expect(ended).toEqual(['one', 'three'])
})

test('startInScope returns the parts and a stop that runs once, and ends started parts if one fails to start', async () => {
  const ended: string[] = []
  const end = async (name: string) => void ended.push(name)
  const whole = await startInScope(async ({ add }) => ({ name: add('one', end) }))
  expect([whole.name, ended]).toEqual(['one', []])
  await Promise.all([whole.stop(), whole.stop()])
  const failing = startInScope(async ({ add }) => {
    add('two', end)
    throw new Error('no start')
  })
  await expect(failing).rejects.toThrow('no start')
  expect(ended).toEqual(['one', 'two'])
})

test('allStarted waits for all parts, even after one has failed', async () => {
  const late = Promise.withResolvers<string>()
  let isSettled = false
  const starting = allStarted([Promise.reject(new Error('no start')), late.promise])
  const watched = starting.catch(() => {
    isSettled = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isSettled).toBe(false)
  late.resolve('started')
  await watched
  await expect(starting).rejects.toThrow('no start')
  expect(await allStarted([Promise.resolve(1), Promise.resolve('2')])).toEqual([1, '2'])
})
