import { expect, test } from 'vitest'
import { PIN_QUEUE } from '../store/jobs.ts'
import { startWorker, type WorkerDeps } from './worker.ts'

/** Gives jobs to a worker whose store knows none of the proofs, and tells which it was asked for. */
async function runPins(data: readonly unknown[]) {
  const asked: string[] = []
  const outcomes: string[] = []
  let run: ((data: unknown[]) => Promise<void>) | undefined
  const store = {
    pinning: { findPin: async (slug: string) => void asked.push(slug) },
    publications: {},
    jobs: {
      work: async (queue: string, _: unknown, handler: typeof run) => {
        if (queue === PIN_QUEUE) run = handler
      },
    },
    enqueueMissing: async () => ({ pins: 0, policies: 0 }),
  }
  const deps = {
    store,
    clock: { now: () => 0 },
    metrics: { observeStage: (stage: string, outcome: string) => outcomes.push(`${stage} ${outcome}`) },
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

test('every proof of every job is looked for, those of a job of an earlier program too', async () => {
  const { asked, outcomes } = await runPins([{ slugs: ['a', 'b'] }, { slug: 'c' }, { slugs: ['d'] }])
  expect(asked).toEqual(['a', 'b', 'c', 'd'])
  expect(outcomes).toEqual(Array.from({ length: 4 }, () => 'pin skipped'))
})

test.each([null, undefined, 'a', 7, ['a'], {}, { slugs: null }, { slugs: 7 }, { slugs: [7, null, {}] }, { slug: {} }])(
  'a job of %j names no proof',
  async (data) => {
    expect((await runPins([data, { slugs: ['a'] }])).asked).toEqual(['a'])
  },
)
