import { expect, onTestFinished, test } from 'vitest'
import { createFakeLog } from '../../test/ports.ts'
import {
  createMigratedDatabase,
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
} from '../../test/store/store.ts'
import { CoordinatorError } from '../errors.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, PUBLISH_QUEUE } from '../store/jobs.ts'
import { openStores } from '../store/openStore.ts'
import { ChainError } from './chain/chainError.ts'
import type { Pinner } from './ipfs/pinner.ts'
import { startWorker, type WorkerDeps } from './worker.ts'

/** Gives jobs to a worker with an empty store, and returns the requested slugs. */
async function runPins(data: readonly unknown[], onFind = async () => {}) {
  const asked: string[] = []
  const outcomes: string[] = []
  let run: ((data: unknown[]) => Promise<void>) | undefined
  const store = {
    pinning: {
      findPin: (slug: string) => {
        asked.push(slug)
        return onFind()
      },
    },
    publications: {},
    jobs: {
      work: async (queue: string, _: unknown, handler: typeof run) => {
        if (queue === PIN_QUEUE) run = handler
      },
      stop: async () => {},
    },
    enqueueMissing: async () => ({ pins: 0, policies: 0 }),
  }
  const deps = {
    store,
    clock: { now: () => 0 },
    metrics: { observeStage: (stage: string, outcome: string) => outcomes.push(`${stage} ${outcome}`) },
    log: createFakeLog(),
    config: {},
  }
  const worker = await startWorker(deps as unknown as WorkerDeps)
  try {
    await run?.([...data])
  } finally {
    await worker.stop()
  }
  return { asked, outcomes }
}

test('pins every proof of every job', async () => {
  const { asked, outcomes } = await runPins([{ slugs: ['a', 'b'] }, { slugs: ['c'] }, { slugs: ['d'] }])
  expect(asked).toEqual(['a', 'b', 'c', 'd'])
  expect(outcomes).toEqual(Array.from({ length: 4 }, () => 'pin skipped'))
})

test.each([null, undefined, 'a', 7, ['a'], {}, { slugs: null }, { slugs: 7 }, { slugs: [7, null, {}] }, { slug: 'a' }])(
  'a job of %j names no proof',
  async (data) => {
    expect((await runPins([data, { slugs: ['a'] }])).asked).toEqual(['a'])
  },
)

test('runs at most 256 pins at a time', async () => {
  let underWay = 0
  let most = 0
  const { asked } = await runPins(
    Array.from({ length: 100 }, (_, job) => ({ slugs: Array.from({ length: 8 }, (_, index) => `${job}/${index}`) })),
    async () => {
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise(setImmediate)
      underWay -= 1
    },
  )
  expect(new Set(asked).size).toBe(800)
  expect(most).toBe(256)
})

test('counts each proof that fails on the way to the chain', async () => {
  const refusal = new ChainError('chain_unavailable')
  const outcomes: string[] = []
  const queues = new Map<string, (data: unknown[]) => Promise<void>>()
  let now = 0
  const deps = {
    store: {
      pinning: {},
      publications: { failOverdue: async () => 2, findDue: async () => [{}], findOpen: async () => [] },
      jobs: {
        work: async (queue: string, _: unknown, handler: () => Promise<void>) => void queues.set(queue, handler),
        stop: async () => {},
      },
      enqueueMissing: async () => ({ pins: 0, policies: 0 }),
    },
    chain: { chainId: 1, assertReady: () => Promise.reject(refusal) },
    clock: { now: () => now },
    metrics: { observeStage: (stage: string, outcome: string) => outcomes.push(`${stage} ${outcome}`) },
    log: createFakeLog(),
    config: {},
  }
  const worker = await startWorker(deps as unknown as WorkerDeps)
  await expect(queues.get(PUBLISH_QUEUE)?.([])).rejects.toBe(refusal)
  expect(outcomes.splice(0)).toEqual(['publish chain_unavailable'])
  now = 1_800_000
  await expect(queues.get(PUBLISH_QUEUE)?.([])).rejects.toBe(refusal)
  await queues.get(CONFIRM_QUEUE)?.([])
  await worker.stop()
  expect(outcomes).toEqual(['publish failed', 'publish failed', 'publish chain_unavailable', 'confirm ok'])
})

test('schedules the next run while proofs wait for a checkpoint', async () => {
  const queues = new Map<string, (data: unknown[]) => Promise<void>>()
  const scheduled: number[] = []
  const deps = {
    store: {
      pinning: {},
      publications: { findDue: async () => [] },
      anchors: { maxAnchored: 2, countDue: async () => ({ count: 1, since: 0 }) },
      jobs: {
        work: async (queue: string, _: unknown, handler: () => Promise<void>) => void queues.set(queue, handler),
        stop: async () => {},
      },
      enqueueMissing: async () => ({ pins: 0, policies: 0 }),
      enqueuePublish: async (startAfter: number) => void scheduled.push(startAfter),
    },
    clock: { now: () => 11_500 },
    metrics: { observeStage() {} },
    log: createFakeLog(),
    config: { logWitness: {}, publishDelayMs: 12_000 },
  }
  const worker = await startWorker(deps as unknown as WorkerDeps)
  await queues.get(PUBLISH_QUEUE)?.([])
  await worker.stop()
  expect(scheduled).toEqual([0.5])
})

test('fails the job if a pin cannot be recorded', async () => {
  const gone = new CoordinatorError('database_unavailable', 'the database is unavailable')
  await expect(runPins([{ slugs: ['a', 'b'] }], () => Promise.reject(gone))).rejects.toBe(gone)
})

test('finishes running jobs on stop before the pinner stops', async () => {
  const { url, drop } = await createMigratedDatabase()
  onTestFinished(drop)
  const { store, pipeline } = await openStores({ databaseUrl: url, isWorker: true, pipelineDelayMs: 0 })
  const wallet = await createTestWallet(store)
  const signing = createTestSigning(wallet)
  await store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const held = new Map<string, Uint8Array<ArrayBuffer>>()
  const pinner: Pick<Pinner, 'pin' | 'read'> = {
    async pin({ cid, bytes }) {
      begun.resolve()
      await gate.promise
      held.set(cid, bytes)
    },
    read: async (cid) => held.get(cid) ?? new Uint8Array(),
  }
  const config = { pinDeadlineMs: 3_600_000 }
  const metrics = { observeStage() {} }
  const deps = { store: pipeline, pinner, clock: { now: () => NOW }, metrics, log: createFakeLog(), config }
  const worker = await startWorker(deps as unknown as WorkerDeps)
  await begun.promise
  let hasStopped = false
  const stopped = worker.stop().then(() => (hasStopped = true))
  await pipeline.countOpenProofs()
  expect(hasStopped).toBe(false)
  gate.resolve()
  await stopped
  expect(await store.findProof(signing.slug)).toMatchObject({ status: 'pending_onchain' })
  await store.close()
})
