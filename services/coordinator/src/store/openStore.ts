import { createStore } from './createStore.ts'
import { openJobs } from './jobs.ts'
import { type OpenDatabaseOptions, openDatabase } from './openDatabase.ts'
import type { Store } from './types.ts'

export type OpenStoreOptions = OpenDatabaseOptions & {
  /** How long after the commit the pipeline takes a proof up: time for the client to broadcast. */
  pipelineDelayMs?: number
}

/**
 * Opens the database with its schema and its job queue.
 *
 * @example
 * const store = await openStore({ databaseUrl: config.databaseUrl, dataDir: config.dataDir })
 */
export async function openStore({ pipelineDelayMs = 1000, ...options }: OpenStoreOptions): Promise<Store> {
  const database = await openDatabase(options)
  try {
    return createStore({ database, jobs: await openJobs(database, { pipelineDelayMs, log: options.log }) })
  } catch (error) {
    await database.close()
    throw error
  }
}
