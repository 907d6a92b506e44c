import type { CollateralCache } from '../enclave/collateral/collateralStore.ts'
import type { LogStore, Store, WebhookEvents } from '../ports.ts'
import { createCollateralCache } from './collateralCache.ts'
import { createStore } from './createStore.ts'
import { guard } from './databaseError.ts'
import { countOpenProofs, type ProofCount } from './inspect.ts'
import { countWebhooks, type WebhookCount } from './inspectWebhooks.ts'
import { CONFIRM_QUEUE, type Jobs, openJobs } from './jobs.ts'
import { createLogStore } from './logs.ts'
import { type ConnectionCount, type Database, type OpenDatabaseOptions, openDatabase } from './openDatabase.ts'
import { createPinningStore, type PinningStore } from './pinning.ts'
import { createPublicationStore, type PublicationStore } from './publications.ts'
import { createRetentionStore, type RetentionStore } from './retention.ts'
import { enqueueMissing, type Swept } from './sweep.ts'
import { createWebhookEvents } from './webhookEvents.ts'
import { createWebhookStore, type WebhookStore } from './webhooks.ts'

type OpenStoreOptions = OpenDatabaseOptions & {
  /** How long after the commit the pipeline takes a proof up: time for the client to broadcast. */
  pipelineDelayMs?: number
  /** How long a proof that is to be published waits for others, so that they share a transaction. */
  publishDelayMs?: number | undefined
  /** Whether this process works on the jobs, and so keeps them in order. */
  isWorker?: boolean
}

/** What the workers need: the rows they move, and the jobs that name them. */
export type PipelineStore = {
  pinning: PinningStore
  publications: PublicationStore
  webhooks: WebhookStore
  webhookEvents: WebhookEvents
  retention: RetentionStore
  jobs: Pick<Jobs, 'work' | 'stop'>
  countOpenProofs(): Promise<ProofCount[]>
  countConnections(): ConnectionCount
  countWebhooks(): Promise<WebhookCount[]>
  enqueueMissing(parameters: { now: number }): Promise<Swept>
  /** Confirms publications again, in so many seconds. */
  enqueueConfirm(seconds: number): Promise<void>
}

/**
 * Opens the database with its schema and its job queue. Closing `store` closes all of it.
 *
 * @example
 * const { store } = await openStores({ databaseUrl: config.databaseUrl })
 */
export async function openStores(options: OpenStoreOptions): Promise<{
  store: Store
  pipeline: PipelineStore
  collateralCache: CollateralCache
  logStore: LogStore
  database: Database
}> {
  const { pipelineDelayMs = 1000, publishDelayMs = 0, isWorker, ...rest } = options
  const database = await openDatabase(rest)
  try {
    const jobs = await openJobs(database, { pipelineDelayMs, isWorker, log: rest.log })
    const { db } = database
    const pipeline: PipelineStore = {
      pinning: createPinningStore({ db, jobs, publishDelayMs }),
      publications: createPublicationStore({ db, jobs }),
      webhooks: createWebhookStore(db),
      webhookEvents: createWebhookEvents(db),
      retention: createRetentionStore(db),
      jobs,
      countOpenProofs: guard(() => countOpenProofs(db)),
      countConnections: database.countConnections,
      countWebhooks: guard(() => countWebhooks(db)),
      enqueueMissing: guard((parameters) => enqueueMissing({ db, jobs }, parameters)),
      enqueueConfirm: guard((startAfter) =>
        db.transaction().execute((transaction) => jobs.insert(transaction, CONFIRM_QUEUE, [{ data: {}, startAfter }])),
      ),
    }
    return {
      store: createStore({ database, jobs }),
      pipeline,
      collateralCache: createCollateralCache(db),
      logStore: createLogStore(database),
      database,
    }
  } catch (error) {
    await database.close()
    throw error
  }
}
