import { type Kysely, sql } from 'kysely'
import { createAnchorStore } from './anchors.ts'
import { createSharedRecords } from './batches.ts'
import { createCollateralCache } from './collateralCache.ts'
import { bind, guard } from './databaseError.ts'
import { createSampleClaims } from './entropySamples.ts'
import { CONFIRM_QUEUE, type Jobs, openJobs, PUBLISH_QUEUE } from './jobs.ts'
import { consumeLogin, createLogin } from './logins.ts'
import { createLogStore } from './logs.ts'
import { createNodeReader } from './logTiles.ts'
import { type Database, type OpenDatabaseOptions, openDatabase } from './openDatabase.ts'
import { createPinningStore } from './pinning.ts'
import { countOpenProofs, findProof, findProofStates, listTransactions } from './proofs.ts'
import { createPublicationStore } from './publications.ts'
import { createRetentionStore } from './retention.ts'
import { createSession, deleteSession, deleteSessions, findSession, listSessions } from './sessions.ts'
import { findSigners } from './signers.ts'
import { createPartitions, findSigned, findSignedAt, insertSignings } from './signings.ts'
import { enqueueMissing } from './sweep.ts'
import type { Tables } from './tables.ts'
import { upsertUser } from './users.ts'
import { createVault, findVault, findVaultAt, listVaults } from './vaults.ts'
import { createWallet, findWallet } from './wallets.ts'
import { countWebhooks, createWebhookEvents, createWebhookStore } from './webhooks.ts'

type OpenStoreOptions = OpenDatabaseOptions & {
  /** The delay between commit and pipeline, in which the client broadcasts. */
  pipelineDelayMs?: number
  /** How long a pinned proof waits for others to share its transaction. */
  publishDelayMs?: number | undefined
  /** Whether this process runs jobs and maintains the queue. */
  isWorker?: boolean
}

/** All reads and writes for requests. Times are in milliseconds since 1970. Failures of the database itself throw `database_unavailable`. */
export function createStore({ database, jobs }: { database: Database; jobs: Jobs }) {
  const { db } = database
  return {
    ...bind(db, {
      createLogin,
      consumeLogin,
      upsertUser,
      createSession,
      findSession,
      listSessions,
      deleteSession,
      deleteSessions,
    }),
    ...bind(db, {
      findWallet,
      createWallet,
      findVault,
      findVaultAt,
      listVaults,
      findSigners,
      findSigned,
      findSignedAt,
    }),
    ...bind(db, { findProofStates, listTransactions, ping }),
    ...bind({ db, fetchNodes: createNodeReader(db) }, { findProof }),
    ...bind({ db, jobs }, { createVault }),
    ...bind({ db, jobs, sharedRecords: createSharedRecords(db) }, { insertSignings }),
    claimSamples: guard(createSampleClaims(db)),
    /** Also closes the jobs and the database. */
    async close() {
      await jobs.stop()
      await database.close()
    },
  }
}

export type Store = ReturnType<typeof createStore>

async function ping(db: Kysely<Tables>): Promise<void> {
  await sql`select 1`.execute(db)
}

/** The rows that workers change, and the jobs that name them. */
function createPipelineStore({
  database,
  jobs,
  publishDelayMs,
}: {
  database: Database
  jobs: Jobs
  publishDelayMs: number
}) {
  const { db, countConnections } = database
  return {
    pinning: createPinningStore({ db, jobs, publishDelayMs }),
    publications: createPublicationStore({ db, jobs }),
    anchors: createAnchorStore({ db }),
    webhooks: createWebhookStore(db),
    webhookEvents: createWebhookEvents(db),
    retention: createRetentionStore(db),
    jobs: jobs as Pick<Jobs, 'work' | 'stop'>,
    countConnections,
    ...bind(db, { countOpenProofs, countWebhooks }),
    ...bind({ db, jobs }, { enqueueMissing, enqueueConfirm, enqueuePublish }),
  }
}

export type PipelineStore = ReturnType<typeof createPipelineStore>

/** Schedules another check of publications. */
async function enqueueConfirm({ db, jobs }: { db: Kysely<Tables>; jobs: Jobs }, startAfter: number): Promise<void> {
  await db.transaction().execute((transaction) => jobs.insert(transaction, CONFIRM_QUEUE, [{ data: {}, startAfter }]))
}

/** Schedules another run that publishes. */
async function enqueuePublish({ db, jobs }: { db: Kysely<Tables>; jobs: Jobs }, startAfter: number): Promise<void> {
  await db.transaction().execute((transaction) => jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {}, startAfter }]))
}

/** Opens the database with its schema and job queue. Closing `store` closes everything. */
export async function openStores(options: OpenStoreOptions) {
  const { pipelineDelayMs = 1000, publishDelayMs = 0, isWorker, ...rest } = options
  const database = await openDatabase(rest)
  try {
    await createPartitions(database.db)
    const jobs = await openJobs(database, { pipelineDelayMs, isWorker, log: rest.log })
    return {
      store: createStore({ database, jobs }),
      pipeline: createPipelineStore({ database, jobs, publishDelayMs }),
      collateralCache: createCollateralCache(database.db),
      logStore: createLogStore(database),
      database,
    }
  } catch (error) {
    await database.close()
    throw error
  }
}
