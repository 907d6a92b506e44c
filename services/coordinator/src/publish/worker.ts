import { isPlainObject } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { createGatherer } from '../store/gather.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, POLICY_QUEUE, PUBLISH_QUEUE } from '../store/jobs.ts'
import type { PipelineStore } from '../store/openStore.ts'
import type { PublicationStore } from '../store/publications.ts'
import type { Clock } from '../system.ts'
import { toReason } from '../toReason.ts'
import { createRebuildReceipt } from './assembleReceipt.ts'
import type { Chain } from './chain/viemChain.ts'
import type { PipelineConfig } from './config.ts'
import { confirmPublications } from './confirm.ts'
import { createObservations } from './confirmRun.ts'
import { createDropper } from './dropReceipts.ts'
import type { Pinner } from './ipfs/pinner.ts'
import { createPinStage, type PinOutcome, pinPolicy } from './pin.ts'
import { publishDue } from './publish.ts'
import { createOutages } from './send.ts'

/** Metrics of the pipeline: the outcome of each attempt of a stage, and the size of each log in its newest checkpoint. */
export type StageMetrics = {
  observeStage(stage: string, outcome: string, count?: number): void
  observeLogSize(origin: string, state: 'published', size: number): void
}

export type WorkerDeps = {
  store: PipelineStore
  pinner: Pinner
  chain: Chain
  clock: Clock
  log: Log
  metrics: StageMetrics
  config: Pick<PipelineConfig, 'pinDeadlineMs' | 'publishDeadlineMs' | 'confirmIntervalMs'> & {
    confirmations: number
    publishDelayMs?: PipelineConfig['publishDelayMs']
    logWitness?: PipelineConfig['logWitness']
    gasPerDay?: PipelineConfig['gasPerDay']
    retentionMs?: PipelineConfig['retentionMs']
  }
}

type Worker = { stop(): Promise<void> }

const SWEEP_MS = 10_000
/** Pin jobs fetched at one time. Retries have one proof per job. */
const PINS = { batchSize: 32, concurrency: 4 }
/** Concurrent pins in this process, however many proofs the jobs have. */
const MAX_PINNING = 256
const POLICIES = { batchSize: 8, concurrency: 1 }
const ONE = { batchSize: 1, concurrency: 1 }

/**
 * Takes proofs from signature to event: pin, publish, confirm. Any number of workers may run. Each step changes a row only from the state
 * that it expects, so that concurrent steps take effect once.
 */
export async function startWorker(deps: WorkerDeps): Promise<Worker> {
  const { store, pinner, chain, clock, log, metrics, config } = deps
  const { pinning, publications, jobs } = store
  const { pinDeadlineMs, publishDeadlineMs, confirmations, confirmIntervalMs, gasPerDay, retentionMs } = config
  const { logWitness: target, publishDelayMs: delayMs = 0 } = config
  const observeAnchor = (origin: string, size: number) => metrics.observeLogSize(origin, 'published', size)
  const pinDeps = { store: pinning, pinner, clock }
  const pinStage = createPinStage({ ...pinDeps, random: Math.random, log, pinDeadlineMs })
  const pins = createGatherer<string, PinOutcome>({
    limit: 1,
    slots: MAX_PINNING,
    async run([slug = ''], { answer }) {
      answer(slug, { status: 'fulfilled', value: await pinStage.pin(slug) })
    },
  })
  const observations = createObservations()
  const chainDeps = {
    store: countFailures(publications, metrics),
    chain,
    clock,
    log,
    publishDeadlineMs,
    gasPerDay,
    outages: createOutages(),
    anchoring: target && { anchors: store.anchors, pinner, target, delayMs, observeAnchor },
  }
  const dropper =
    retentionMs === undefined
      ? undefined
      : createDropper({
          store: store.retention,
          pinner,
          rebuild: createRebuildReceipt(pinning),
          clock,
          log,
          retentionMs,
        })
  let sweeping: Promise<void> | undefined
  let dropping: Promise<void> | undefined

  async function sweep() {
    try {
      const { pins, policies } = await store.enqueueMissing({ now: clock.now() })
      if (pins > 0) log.warn({ msg: 'Found proofs without a job', count: pins })
      if (policies > 0) log.warn({ msg: 'Found policies without a job', count: policies })
    } catch (error) {
      log.warn({ msg: 'Could not queue missing jobs', ...toReason(error) })
    }
  }
  /** The next round finds receipts that were not dropped. */
  async function drop() {
    try {
      const { dropped, kept } = (await dropper?.run()) ?? { dropped: 0, kept: 0 }
      if (dropped > 0) metrics.observeStage('retention', 'dropped', dropped)
      if (kept > 0) metrics.observeStage('retention', 'kept', kept)
    } catch (error) {
      log.warn({ msg: 'Could not drop receipts', ...toReason(error) })
    }
  }
  /** Counts the outcome of each attempt. Throws failures, so that pg-boss retries. The sweep finds jobs that pg-boss dropped. */
  async function attempt(stage: string, run: () => Promise<readonly string[]>) {
    try {
      for (const outcome of await run()) metrics.observeStage(stage, outcome)
    } catch (error) {
      const reason = toReason(error)
      metrics.observeStage(stage, reason.code)
      log.warn({ msg: 'Could not finish a stage', name: stage, ...reason })
      throw error
    }
  }

  await jobs.work(PIN_QUEUE, PINS, (data) => attempt('pin', () => Promise.all(data.flatMap(toSlugs).map(pins.add))))
  await jobs.work(POLICY_QUEUE, POLICIES, (data) =>
    attempt('policy', () => Promise.all(data.map((one) => pinPolicy(pinDeps, toHash(one))))),
  )
  await jobs.work(PUBLISH_QUEUE, ONE, () =>
    attempt('publish', async () => {
      const { waitMs } = await publishDue(chainDeps)
      if (waitMs !== undefined) await store.enqueuePublish(waitMs / 1000)
      return ['ok']
    }),
  )
  await jobs.work(CONFIRM_QUEUE, ONE, () =>
    attempt('confirm', async () => {
      const { open } = await confirmPublications({ ...chainDeps, confirmations, observations })
      if (open > 0) await store.enqueueConfirm(confirmIntervalMs / 1000)
      return ['ok']
    }),
  )
  await sweep()
  const timer = setInterval(() => {
    sweeping ??= sweep().finally(() => {
      sweeping = undefined
    })
    dropping ??= drop().finally(() => {
      dropping = undefined
    })
  }, SWEEP_MS)
  return {
    async stop() {
      clearInterval(timer)
      dropper?.stop()
      // Running jobs need the pinner and the chain, which stop later. Otherwise the jobs would fail and count as attempts.
      await Promise.all([jobs.stop(), sweeping, dropping])
    },
  }
}

/** Counts proofs that fail on the way to the chain as `failed`, once per publication. */
function countFailures(publications: PublicationStore, { observeStage }: StageMetrics): PublicationStore {
  return {
    ...publications,
    async failOverdue(parameters) {
      const count = await publications.failOverdue(parameters)
      for (let index = 0; index < count; index++) observeStage('publish', 'failed')
      return count
    },
    async failDue(parameters) {
      const hasFailed = await publications.failDue(parameters)
      if (hasFailed) observeStage('publish', 'failed')
      return hasFailed
    },
    async fail(parameters) {
      const hasFailed = await publications.fail(parameters)
      if (hasFailed) observeStage('confirm', 'failed')
      return hasFailed
    },
  }
}

function toSlugs(data: unknown): string[] {
  const slugs = isPlainObject(data) ? data.slugs : undefined
  return Array.isArray(slugs) ? slugs.filter((one) => typeof one === 'string') : []
}

function toHash(data: unknown): string {
  const hash = isPlainObject(data) ? data.hash : undefined
  return typeof hash === 'string' ? hash : ''
}
