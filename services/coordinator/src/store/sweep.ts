import { type Kysely, sql } from 'kysely'
import { CONFIRM_QUEUE, type Jobs, PIN_QUEUE, POLICY_QUEUE, PUBLISH_QUEUE } from './jobs.ts'
import { createPartitions } from './signings.ts'
import type { Tables } from './tables.ts'

export type Swept = { pins: number; policies: number; hasDue: boolean; hasOpen: boolean }

/** Proofs in one round, and policies: the rest is found by the next. */
const MAX_FOUND = 1_000
/** What is this young has its job for certain. */
const GRACE_MS = 10_000

/**
 * Writes the jobs that should be there and are not: of every proof that still has somewhere to go, and of every
 * policy that is not pinned. Jobs are written with the rows
 * they are about, so this finds something only after they were lost: given up by pg-boss, or deleted by hand.
 *
 * Live jobs are those that wait and those under way, each found by an index that has nothing else: asked for in one condition, they
 * would be looked for among all that are finished. (None of ours is ever `blocked`; the index of those that wait has only such.)
 */
export async function enqueueMissing(
  { db, jobs }: { db: Kysely<Tables>; jobs: Jobs },
  { now }: { now: number },
): Promise<Swept> {
  const swept = await db.transaction().execute(async (transaction) => {
    const before = new Date(now - GRACE_MS)
    // In one array, because PostgreSQL guesses that each job has hundreds of slugs: for so many it makes no hash table, and each proof would
    // be compared with each of them.
    const { rows: pins } = await sql<{ slug: string }>`
      with live as materialized (
        select array_agg(slug) as slugs from (
          select jsonb_path_query(data, '$.slugs[*] ? (@.type() == "string")') #>> '{}' as slug from (
            select data from pgboss.job where name = ${PIN_QUEUE} and state < 'active' and not blocked
            union all
            select data from pgboss.job where name = ${PIN_QUEUE} and state = 'active'
          ) as job
        ) as named
      ),
      missing as (
        select slug from proofs
        where status = 'pending_pin' and created_at < ${before}::timestamptz
          and slug not in (select unnest(slugs) from live)
        order by created_at limit ${MAX_FOUND}
      ),
      pins as (${sql.raw(jobs.insertPins('missing'))})
      select slug from missing`.execute(transaction)
    const { rows: unpinned } = await sql<{ hash: string }>`
      with live as materialized (
        select data ->> 'hash' as hash from pgboss.job where name = ${POLICY_QUEUE} and state < 'active' and not blocked
        union all
        select data ->> 'hash' from pgboss.job where name = ${POLICY_QUEUE} and state = 'active'
      )
      select encode(hash, 'hex') as hash from policies
      where pinned_at is null and created_at < ${before}::timestamptz
        and encode(hash, 'hex') not in (select hash from live where hash is not null)
      order by created_at limit ${MAX_FOUND}`.execute(transaction)
    const policies = unpinned.map(({ hash }) => ({ data: { hash } }))
    await jobs.insert(transaction, POLICY_QUEUE, policies)
    const { rows: found } = await sql<{ has_due: boolean; has_open: boolean }>`
      select
        exists (select from proofs where status = 'pending_onchain' and publication_id is null) as has_due,
        exists (select from publications where status in ('pending', 'confirmed')) as has_open`.execute(transaction)
    const hasDue = found[0]?.has_due === true
    const hasOpen = found[0]?.has_open === true
    // One job at most waits in each of these queues: one too many is dropped by the database.
    if (hasDue) await jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {} }])
    if (hasOpen) await jobs.insert(transaction, CONFIRM_QUEUE, [{ data: {} }])
    return { pins: pins.length, policies: policies.length, hasDue, hasOpen }
  })
  await createPartitions(db)
  return swept
}
