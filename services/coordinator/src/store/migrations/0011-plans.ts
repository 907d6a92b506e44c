import { type Kysely, sql } from 'kysely'

/**
 * What a call of `append_log` costs depended on how many entries it brings: for few, some of its statements were planned anew each time, while
 * the log was locked. All of them find their rows by key.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of ['append_log', 'take_claims']) {
    await sql.raw(`alter function ${name} set plan_cache_mode = force_generic_plan`).execute(db)
  }
}
