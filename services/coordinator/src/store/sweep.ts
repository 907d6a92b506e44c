import { type Kysely, sql } from 'kysely'
import { CONFIRM_QUEUE, type Jobs, PIN_QUEUE, POLICY_QUEUE, PUBLISH_QUEUE } from './jobs.ts'
import { createPartitions } from './signings.ts'
import type { Tables } from './tables.ts'

export type Swept = { pins: number; policies: number; hasDue: boolean; hasOpen: boolean }

/** The most proofs and policies in one round. The next round finds the rest. */
const MAX_FOUND = 1_000
/** Younger rows certainly have their job. */
const GRACE_MS = 10_000

/**
 * Writes missing jobs of unfinished proofs and unpinned policies. Jobs are committed with their rows, so one is missing only if pg-boss
 * abandoned it or someone deleted it.
 *
 * Live jobs are waiting or active. Each of these has a separate index; in one condition, PostgreSQL would search all finished jobs. (None of
 * ours is ever `blocked`.)
 */
export async function enqueueMissing(
  { db, jobs }: { db: Kysely<Tables>; jobs: Jobs },
  { now }: { now: number },
): Promise<Swept> {
  const swept = await db.transaction().execute(async (transaction) => {
    const before = new Date(now - GRACE_MS)
    // One array, because PostgreSQL estimates hundreds of slugs per job. It would then avoid a hash table and compare each proof with each
    // slug.
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
    // The database drops a second waiting job of these queues.
    if (hasDue) await jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {} }])
    if (hasOpen) await jobs.insert(transaction, CONFIRM_QUEUE, [{ data: {} }])
    return { pins: pins.length, policies: policies.length, hasDue, hasOpen }
  })
  await createPartitions(db)
  return swept
}
