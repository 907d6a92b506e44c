import { createHash } from 'node:crypto'
import type { QuoteSource } from '@countersign/evidence'
import { computeTdxReportData, fromHex, hashBatch, hashTree, toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createBatcher, type Placement } from './batch.ts'

const bootId = new Uint8Array(16).fill(1)
const configHash = new Uint8Array(32).fill(2)
const log = { info() {}, warn() {}, error() {} }
const leafOf = (index: number) => new Uint8Array(createHash('sha256').update(String(index)).digest())

/** A quote source whose quotes the test answers in order. */
function createManualSource() {
  const asked: { reportData: Uint8Array; answer(): void; fail(): void }[] = []
  let inFlight = 0
  let mostInFlight = 0
  const quoteSource: QuoteSource = {
    mode: 'mock',
    getQuote: (reportData) =>
      new Promise((resolve, reject) => {
        inFlight += 1
        mostInFlight = Math.max(mostInFlight, inFlight)
        const end = (finish: () => void) => () => {
          inFlight -= 1
          finish()
        }
        asked.push({
          reportData,
          answer: end(() => resolve({ quote: new Uint8Array([asked.length]) })),
          fail: end(() => reject(new Error('no quote'))),
        })
      }),
  }
  return { quoteSource, asked, mostInFlight: () => mostInFlight }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

function assertCovered(placement: Placement, leaf: Uint8Array, reportData: Uint8Array) {
  const { batch, leafIndex } = placement
  expect(batch.leaves[leafIndex]).toBe(toHex(leaf))
  const covered = computeTdxReportData({
    treeSize: batch.leaves.length,
    root: hashTree(batch.leaves.map(fromHex)),
    bootId,
    batchSequence: batch.sequence,
    previousBatchHash: fromHex(batch.previous),
    configHash,
  })
  expect(toHex(covered)).toBe(toHex(reportData))
}

test('makes one quote at a time; leaves that arrive meanwhile share the next, and each is covered', async () => {
  const { quoteSource, asked, mostInFlight } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  const first = batcher.add(leafOf(0))
  await settle()
  const rest = Array.from({ length: 9 }, (_, index) => batcher.add(leafOf(index + 1)))
  asked[0]?.answer()
  const alone = await first
  expect(alone.batch.leaves).toHaveLength(1)
  await settle()
  expect(asked).toHaveLength(2)
  asked[1]?.answer()
  const shared = await Promise.all(rest)
  expect(new Set(shared.map(({ batch }) => batch)).size).toBe(1)
  expect(shared[0]?.batch).toMatchObject({ leaves: { length: 9 }, sequence: 1 })
  assertCovered(alone, leafOf(0), asked[0]?.reportData ?? new Uint8Array())
  for (const [index, placement] of shared.entries())
    assertCovered(placement, leafOf(index + 1), asked[1]?.reportData ?? new Uint8Array())
  expect(mostInFlight()).toBe(1)
})

test('a quote waits for leaves that were already being signed, and for no later ones', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  const onFirst = batcher.expect(2)
  const onSecond = batcher.expect(30)
  const early = batcher.add(leafOf(0))
  await settle()
  const onLate = batcher.expect(1)
  const late = [batcher.add(leafOf(1)), batcher.add(leafOf(2))]
  onFirst()
  await settle()
  expect(asked).toHaveLength(0)
  // Nor for those that have failed.
  onSecond()
  await settle()
  expect(asked).toHaveLength(1)
  asked[0]?.answer()
  expect((await early).batch.leaves).toHaveLength(3)
  await Promise.all(late)
  onLate()
})

test.each([33, Number.POSITIVE_INFINITY])('a quote does not wait for %d leaves, or for later ones', async (count) => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  batcher.expect(count)
  batcher.expect(1)
  const alone = batcher.add(leafOf(0))
  await settle()
  asked[0]?.answer()
  expect((await alone).batch.leaves).toHaveLength(1)
})

test('a full quote does not wait', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 2, log })
  batcher.expect(1)
  const all = [batcher.add(leafOf(0)), batcher.add(leafOf(1))]
  await settle()
  asked[0]?.answer()
  expect((await Promise.all(all))[0]?.batch.leaves).toHaveLength(2)
})

test('leaves added in one turn share one quote', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  const all = Array.from({ length: 5 }, (_, index) => batcher.add(leafOf(index)))
  await settle()
  asked[0]?.answer()
  expect(new Set((await Promise.all(all)).map(({ batch }) => batch)).size).toBe(1)
})

test('the batches of one boot form a chain', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  let previous = '00'.repeat(32)
  for (let sequence = 0; sequence < 4; sequence++) {
    const pending = batcher.add(leafOf(sequence))
    await settle()
    asked[sequence]?.answer()
    const { batch } = await pending
    expect(batch).toMatchObject({ sequence, previous })
    previous = toHex(hashBatch(asked[sequence]?.reportData ?? new Uint8Array()))
    await batcher.drain()
  }
})

test('a quote covers at most the limit', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 4, log })
  const all = Array.from({ length: 10 }, (_, index) => batcher.add(leafOf(index)))
  for (let index = 0; index < 3; index++) {
    await settle()
    asked[index]?.answer()
  }
  expect((await Promise.all(all)).map(({ batch }) => batch.leaves.length)).toEqual([4, 4, 4, 4, 4, 4, 4, 4, 2, 2])
})

test('a batch without a quote fails as a whole and leaves no gap, and the next one continues', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  const lost = await batcher.add(leafOf(0))
  await settle()
  const next = batcher.add(leafOf(1))
  asked[0]?.fail()
  await expect(lost.batch.signed).rejects.toThrow('no quote')
  await settle()
  asked[1]?.answer()
  expect(await (await next).batch.signed).toMatchObject({ sequence: 0, previous: '00'.repeat(32) })
})

test('draining waits for pending batches', async () => {
  const { quoteSource, asked } = createManualSource()
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: 256, log })
  const placed = batcher.add(leafOf(0))
  let isDrained = false
  const drained = batcher.drain().then(() => {
    isDrained = true
  })
  await settle()
  expect(isDrained).toBe(false)
  asked[0]?.answer()
  await drained
  await placed
})

test('reports each batch in order when its quote starts, before any caller gets it', async () => {
  const { quoteSource, asked } = createManualSource()
  const told: string[] = []
  const batcher = createBatcher({
    quoteSource,
    bootId,
    configHash,
    limit: 2,
    log,
    onStart: ({ sequence, leaves }) => told.push(`${sequence}: ${leaves.length}, ${asked.length} asked`),
  })
  const follow = async (index: number) => {
    const { batch } = await batcher.add(leafOf(index))
    told.push(`leaf ${index}`)
    await batch.signed.then(
      ({ quote }) => told.push(`quote ${index}: ${quote}`),
      () => told.push(`failed ${index}`),
    )
  }
  const all = [0, 1, 2, 3, 4].map(follow)
  for (const end of ['answer', 'fail', 'answer'] as const) {
    await settle()
    asked.at(-1)?.[end]()
  }
  await Promise.all(all)
  expect(told).toEqual([
    ...['0: 2, 1 asked', 'leaf 0', 'leaf 1', 'quote 0: 01', 'quote 1: 01'],
    ...['1: 2, 2 asked', 'leaf 2', 'leaf 3', 'failed 2', 'failed 3'],
    ...['1: 1, 3 asked', 'leaf 4', 'quote 4: 03'],
  ])
})
