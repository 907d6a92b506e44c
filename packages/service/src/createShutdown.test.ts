import { expect, test } from 'vitest'
import { createShutdown } from './createShutdown.ts'

test('stops the last added first, one after the other', async () => {
  const shutdown = createShutdown()
  const order: string[] = []
  const add = (name: string) =>
    shutdown.add(async () => {
      order.push(`${name} stops`)
      await new Promise(setImmediate)
      order.push(`${name} stopped`)
    })
  add('store')
  add('server')
  await shutdown.run()
  expect(order).toEqual(['server stops', 'server stopped', 'store stops', 'store stopped'])
})

test('stops those of one call together, and earlier ones after all of them, even if one fails', async () => {
  const shutdown = createShutdown()
  const order: string[] = []
  const slow = Promise.withResolvers<void>()
  shutdown.add(() => void order.push('store'))
  shutdown.add(
    async () => {
      order.push('slow stops')
      await slow.promise
      order.push('slow stopped')
    },
    () => {
      throw new Error('stuck')
    },
    () => void order.push('quick'),
  )
  const run = shutdown.run()
  run.catch(() => {})
  await new Promise(setImmediate)
  expect(order).toEqual(['slow stops', 'quick'])
  slow.resolve()
  await expect(run).rejects.toThrow('stuck')
  expect(order).toEqual(['slow stops', 'quick', 'slow stopped', 'store'])
})

test('runs every stop even if one fails, and rejects with the failure', async () => {
  const shutdown = createShutdown()
  const order: string[] = []
  shutdown.add(() => void order.push('first'))
  shutdown.add(() => Promise.reject(new Error('stuck')))
  shutdown.add(() => void order.push('third'))
  await expect(shutdown.run()).rejects.toThrow('stuck')
  expect(order).toEqual(['third', 'first'])
})

test('rejects with several failures together', async () => {
  const shutdown = createShutdown()
  shutdown.add(() => {
    throw new Error('one')
  })
  shutdown.add(() => Promise.reject(new Error('two')))
  await expect(shutdown.run()).rejects.toMatchObject({
    message: '2 parts could not be stopped',
    errors: [new Error('two'), new Error('one')],
  })
})

test('runs once, however often it is called', async () => {
  const shutdown = createShutdown()
  let count = 0
  shutdown.add(() => void count++)
  await Promise.all([shutdown.run(), shutdown.run()])
  await shutdown.run()
  expect(count).toBe(1)
})

test('stops what is added while it runs, and throws for later additions', async () => {
  const shutdown = createShutdown()
  const order: string[] = []
  shutdown.add(() => void order.push('store'))
  shutdown.add(() => shutdown.add(() => void order.push('late')))
  await shutdown.run()
  expect(order).toEqual(['late', 'store'])
  expect(() => shutdown.add(() => {})).toThrow('already')
})

test('resolves with nothing to stop', async () => {
  await expect(createShutdown().run()).resolves.toBeUndefined()
})
