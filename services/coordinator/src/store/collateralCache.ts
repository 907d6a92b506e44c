import type { Kysely } from 'kysely'
import type { CollateralCache } from '../enclave/collateral/collateralStore.ts'
import { guard } from './databaseError.ts'
import type { Tables } from './tables.ts'

/** Collateral in the database, so that every coordinator on it can sign after a restart, whether Intel's service answers or not. */
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
