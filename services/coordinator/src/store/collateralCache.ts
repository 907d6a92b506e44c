import type { Platform } from '@countersign/evidence'
import type { Kysely } from 'kysely'
import { guard } from './databaseError.ts'
import type { Tables } from './tables.ts'

/** Stores collateral across restarts, so that a coordinator can sign while Intel's service is unavailable. The cache isn't trusted. */
export type CollateralCache = {
  load(platform: Platform): Promise<Uint8Array | undefined>
  save(platform: Platform, bytes: Uint8Array): Promise<void>
}

/** Stores collateral in the database, shared by all coordinators. */
export function createCollateralCache(db: Kysely<Tables>): CollateralCache {
  return {
    load: guard(async ({ fmspc, ca }) => {
      const row = await db
        .selectFrom('collateral_cache')
        .where('fmspc', '=', fmspc)
        .where('ca', '=', ca)
        .select('bytes')
        .executeTakeFirst()
      return row?.bytes
    }),
    save: guard(async ({ fmspc, ca }, bytes) => {
      await db
        .insertInto('collateral_cache')
        .values({ fmspc, ca, bytes })
        .onConflict((conflict) => conflict.columns(['fmspc', 'ca']).doUpdateSet({ bytes }))
        .execute()
    }),
  }
}
