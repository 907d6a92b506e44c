import { type Kysely, sql } from 'kysely'

/** What the publications of an account may use in a day is counted before each new one: without this, over all that there ever were. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('create index publications_by_time on publications (chain_id, account, created_at)').execute(db)
}
