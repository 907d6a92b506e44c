import { expect, test } from 'vitest'
import { createGatherer, type GathererParameters } from './gather.ts'

type Batch = {
  requests: readonly number[]
  answerOne(request: number): void
  free(): void
  finish(): void
  fail(): void
  end(): void
}

/** Batches that the test answers. */
function createManual(changes: Partial<GathererParameters<number, string>> = {}) {
  const batches: Batch[] = []
  const gatherer = createGatherer<number, string>({
    keyOf: String,
    limit: 256,
    slots: 1,
    run: (requests, { onSent, answer }) =>
      new Promise((resolve, reject) => {
        const answerOne = (request: number) =>
          request < 0
            ? answer(request, { status: 'rejected', reason: new Error(`refused ${request}`) })
            : answer(request, { status: 'fulfilled', value: `signed ${request}` })
        const finish = () => {
          requests.forEach(answerOne)
          resolve()
        }
        batches.push({ requests, answerOne, free: onSent, finish, fail: () => reject(new Error('lost')), end: resolve })
      }),
    ...changes,
  })
  return { gatherer, batches }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('requests of one turn are sent together; those that arrive meanwhile share the next batch', async () => {
  const { gatherer, batches } = createManual()
  const first = [1, 2].map((request) => gatherer.add(request))
  await turn()
  const second = [3, 4, 5].map((request) => gatherer.add(request))
  await turn()
  expect(batches.map(({ requests }) => requests)).toEqual([[1, 2]])
  batches[0]?.finish()
  expect(await Promise.all(first)).toEqual(['signed 1', 'signed 2'])
  await turn()
  expect(batches[1]?.requests).toEqual([3, 4, 5])
  batches[1]?.finish()
  await Promise.all(second)
})

test('if the number of slots drops, sends nothing until enough batches have ended', async () => {
  let slots = 2
  const { gatherer, batches } = createManual({ slots: () => slots })
  const answers: Promise<string>[] = []
  const addNext = async () => {
    answers.push(gatherer.add(answers.length))
    await turn()
  }
  await addNext()
  await addNext()
  slots = 1
  await addNext()
  batches[0]?.finish()
  await addNext()
  expect(batches.map(({ requests }) => requests)).toEqual([[0], [1]])
  batches[1]?.finish()
  await turn()
  await turn()
  expect(batches[2]?.requests).toEqual([2, 3])
  batches[2]?.finish()
  await Promise.all(answers)
})

test('a slot is freed once, as soon as the enclave has answered', async () => {
  const { gatherer, batches } = createManual()
  const first = gatherer.add(1)
  await turn()
  const rest = [2, 3].map((request) => gatherer.add(request))
  batches[0]?.free()
  batches[0]?.free()
  await turn()
  expect(batches.map(({ requests }) => requests)).toEqual([[1], [2, 3]])
  const last = gatherer.add(4)
  batches[0]?.finish()
  await first
  await turn()
  expect(batches).toHaveLength(2)
  batches[1]?.finish()
  await Promise.all(rest)
  await turn()
  batches[2]?.finish()
  expect(await last).toBe('signed 4')
})

test('limits the concurrent batches and the requests per batch', async () => {
  const { gatherer, batches } = createManual({ slots: 2, limit: 3 })
  const all = Array.from({ length: 8 }, (_, request) => gatherer.add(request))
  await turn()
  expect(batches.map(({ requests }) => requests.length)).toEqual([3, 3])
  for (const batch of batches) batch.finish()
  await turn()
  await turn()
  batches[2]?.finish()
  expect(await Promise.all(all)).toHaveLength(8)
})

test('50 identical pending requests are one', async () => {
  const { gatherer, batches } = createManual()
  const all = Array.from({ length: 50 }, () => gatherer.add(7))
  await turn()
  expect(batches[0]?.requests).toEqual([7])
  const late = gatherer.add(7)
  batches[0]?.finish()
  expect(new Set(await Promise.all([...all, late]))).toEqual(new Set(['signed 7']))
})

test('an invalid request fails alone; a lost batch fails all its requests and no others', async () => {
  const { gatherer, batches } = createManual()
  const [good, bad] = [gatherer.add(1), gatherer.add(-1)]
  await turn()
  batches[0]?.finish()
  expect(await good).toBe('signed 1')
  await expect(bad).rejects.toThrow('refused -1')
  const lost = gatherer.add(2)
  await turn()
  batches[1]?.fail()
  await expect(lost).rejects.toThrow('lost')
  const next = gatherer.add(2)
  await turn()
  batches[2]?.finish()
  expect(await next).toBe('signed 2')
})

test('answers a request once, when its part is done; an unanswered one fails', async () => {
  const { gatherer, batches } = createManual()
  const [first, second, forgotten] = [1, 2, 3].map((request) => gatherer.add(request))
  await turn()
  batches[0]?.answerOne(1)
  expect(await first).toBe('signed 1')
  batches[0]?.answerOne(2)
  batches[0]?.answerOne(-2)
  batches[0]?.end()
  expect(await second).toBe('signed 2')
  await expect(forgotten).rejects.toThrow('a request got no answer')
})

test('without a key each request is answered separately', async () => {
  const seen: object[] = []
  const gatherer = createGatherer<object, number>({
    limit: 8,
    slots: 1,
    async run(requests, { answer }) {
      for (const request of requests) answer(request, { status: 'fulfilled', value: seen.push(request) })
    },
  })
  expect(await Promise.all([gatherer.add({}), gatherer.add({})])).toEqual([1, 2])
})

test('stop rejects new requests and waits for pending ones', async () => {
  const { gatherer, batches } = createManual()
  const pending = gatherer.add(1)
  await turn()
  const stopped = gatherer.stop(new Error('stopping'))
  await expect(gatherer.add(2)).rejects.toThrow('stopping')
  batches[0]?.finish()
  await stopped
  expect(await pending).toBe('signed 1')
})

test('limits the weight of a batch; a heavier request is sent by itself', async () => {
  const { gatherer, batches } = createManual({ weight: { of: (request) => request, limit: 10 }, slots: 9 })
  const all = [4, 5, 2, 30, 1, 9].map((request) => gatherer.add(request))
  await turn()
  expect(batches.map(({ requests }) => requests)).toEqual([[4, 5], [2], [30], [1, 9]])
  for (const { finish } of batches) finish()
  await Promise.all(all)
})
