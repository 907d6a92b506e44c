import { expect, test, vi } from 'vitest'
import { CoordinatorError } from '../errors.ts'
import { gatherCalls } from './gather.ts'

type Asked = { number: number }

const double = async (asked: readonly Asked[]) => asked.map(({ number }) => 2 * number)
const list = (count: number) => Array.from({ length: count }, (_, number) => ({ number }))

test('calls of one turn share a run, and each gets its own answer', async () => {
  const run = vi.fn(double)
  const call = gatherCalls(run)
  expect(await Promise.all(list(5).map(call))).toEqual([0, 2, 4, 6, 8])
  expect(run).toHaveBeenCalledTimes(1)
})

test('calls that arrive during a run wait for the next', async () => {
  const first = Promise.withResolvers<void>()
  const run = vi.fn(async (asked: readonly Asked[]) => {
    if (asked[0]?.number === 0) await first.promise
    return double(asked)
  })
  const call = gatherCalls(run)
  const early = call({ number: 0 })
  await expect.poll(() => run).toHaveBeenCalledTimes(1)
  const late = [call({ number: 1 }), call({ number: 2 })]
  first.resolve()
  expect(await Promise.all([early, ...late])).toEqual([0, 2, 4])
  expect(run.mock.calls.map(([asked]) => asked.length)).toEqual([1, 2])
})

test('a run has at most 256 calls', async () => {
  const run = vi.fn(double)
  await Promise.all(list(600).map(gatherCalls(run)))
  expect(run.mock.calls.map(([asked]) => asked.length)).toEqual([256, 256, 88])
})

test('limits a run by number and weight', async () => {
  const run = vi.fn(double)
  const sizes = () => run.mock.calls.splice(0).map(([asked]) => asked.length)
  await Promise.all(list(6).map(gatherCalls(run, { limit: 4 })))
  expect(sizes()).toEqual([4, 2])
  await Promise.all(list(6).map(gatherCalls(run, { weight: { of: ({ number }) => number, limit: 4 } })))
  // 0 + 1 + 2, 3, 4, and 5, which exceeds the limit by itself.
  expect(sizes()).toEqual([3, 1, 1, 1])
})

test('answers equal requests separately', async () => {
  const call = gatherCalls(double)
  expect(await Promise.all([call({ number: 3 }), call({ number: 3 })])).toEqual([6, 6])
})

test('an invalid one fails alone', async () => {
  const call = gatherCalls(async (asked: readonly Asked[]) => {
    if (asked.some(({ number }) => number === 2)) throw new Error('two is bad')
    return double(asked)
  })
  const settled = await Promise.allSettled(list(4).map(call))
  expect(settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message))).toEqual([
    0,
    2,
    'two is bad',
    6,
  ])
})

test('calls an unavailable database once for all', async () => {
  const run = vi.fn(async (): Promise<number[]> => {
    throw new CoordinatorError('database_unavailable', 'the database is unavailable')
  })
  const settled = await Promise.allSettled(list(4).map(gatherCalls<Asked, number>(run)))
  for (const one of settled) expect(one).toMatchObject({ reason: { code: 'database_unavailable' } })
  expect(run).toHaveBeenCalledTimes(1)
})

test('splits a run that is too large for the database, and increases the size after successes', async () => {
  const run = vi.fn(async (asked: readonly Asked[]) => {
    if (asked.length > 2) throw new CoordinatorError('database_unavailable', 'the database is unavailable')
    return double(asked)
  })
  const call = gatherCalls(run)
  let open = list(8)
  for (let round = 0; open.length > 0; round++) {
    if (round > 8) throw new Error('it does not end')
    const settled = await Promise.allSettled(open.map(call))
    open = open.filter((_, index) => settled[index]?.status === 'rejected')
  }
  expect(run.mock.calls.map(([asked]) => asked.length)).toEqual([8, 4, 2, 4, 2, 4, 2, 2])
})

test('an invalid one among parts fails alone', async () => {
  let isAway = true
  const call = gatherCalls(async (asked: readonly Asked[]) => {
    if (isAway) throw new CoordinatorError('database_unavailable', 'the database is unavailable')
    if (asked.some(({ number }) => number === 0)) throw new Error('zero is bad')
    return double(asked)
  })
  await Promise.allSettled([call({ number: 0 })])
  isAway = false
  const settled = await Promise.allSettled(list(3).map(call))
  expect(settled).toMatchObject([{ reason: { message: 'zero is bad' } }, { value: 2 }, { value: 4 }])
})
