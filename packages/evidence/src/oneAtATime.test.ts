import { expect, test } from 'vitest'
import { createGate } from './evidence.fake.ts'
import { createOneAtATime } from './oneAtATime.ts'

test('a task starts only when the one before has ended', async () => {
  const oneAtATime = createOneAtATime()
  const gate = createGate()
  const log: string[] = []
  const first = oneAtATime(async () => {
    log.push('first starts')
    await gate.opened
    log.push('first ends')
  })
  const second = oneAtATime(async () => {
    log.push('second starts')
  })
  await Promise.resolve()
  await Promise.resolve()
  expect(log).toEqual(['first starts'])
  gate.open()
  await Promise.all([first, second])
  expect(log).toEqual(['first starts', 'first ends', 'second starts'])
})

test('tasks run in the order of the calls, each with its own result', async () => {
  const oneAtATime = createOneAtATime()
  const order: number[] = []
  const results = await Promise.all(
    [0, 1, 2, 3, 4].map((number) =>
      oneAtATime(async () => {
        order.push(number)
        return number * 10
      }),
    ),
  )
  expect(order).toEqual([0, 1, 2, 3, 4])
  expect(results).toEqual([0, 10, 20, 30, 40])
})

test('a task that fails fails its own caller and nobody else', async () => {
  const oneAtATime = createOneAtATime()
  const bad = oneAtATime(async () => {
    throw new Error('bad')
  })
  const good = oneAtATime(async () => 'good')
  await expect(bad).rejects.toThrow('bad')
  await expect(good).resolves.toBe('good')
})

test('two queues do not wait for each other', async () => {
  const gate = createGate()
  const stuck = createOneAtATime()(() => gate.opened)
  await expect(createOneAtATime()(async () => 'free')).resolves.toBe('free')
  gate.open()
  await stuck
})
