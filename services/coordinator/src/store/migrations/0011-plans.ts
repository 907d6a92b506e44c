import { type Kysely, sql } from 'kysely'

/**
 * For a call of `append_log` that brings few entries, PostgreSQL made new plans for some of its statements each time, while the log was
 * locked. They find their rows by key (`take_claims` since `0012-claims-by-key`), so one plan is as good for any number.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of ['append_log', 'take_claims']) {
    await sql.raw(`alter function ${name} set plan_cache_mode = force_generic_plan`).execute(db)
  }
}
