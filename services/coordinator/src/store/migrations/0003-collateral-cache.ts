import { type Kysely, sql } from 'kysely'

/** The newest collateral of each platform, over restarts. Unlike `collaterals`, whose rows receipts refer to, these are replaced. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table collateral_cache (
    fmspc text not null,
    ca text not null check (ca in ('processor', 'platform')),
    bytes bytea not null,
    primary key (fmspc, ca)
  )`.execute(db)
}
