import { hash } from 'node:crypto'
import { type Kysely, type QueryResult, sql } from 'kysely'
import { bind } from './databaseError.ts'
import { type KnownColumns, unpackReceipt } from './signings.ts'
import type { Tables } from './tables.ts'
import { idsOf } from './values.ts'

/** The receipt of a final proof, with the SHA-256 of its stored bytes in hex. */
export type StoredReceipt = { slug: string; cid: string; hash: string }

/** A page of the list. The next page starts after `last`, unless `isOver`: then all later receipts are too young. */
type StoredPage = { receipts: StoredReceipt[]; last: string; isOver: boolean }

export const createRetentionStore = (db: Kysely<Tables>) => bind(db, { listStored, dropReceipts })

export type RetentionStore = ReturnType<typeof createRetentionStore>

type HeldRow = KnownColumns & {
  id: string
  slug: string | null
  ipfs_cid: string | null
  is_old: boolean
  bytes: Uint8Array | null
}

/**
 * Lists receipts of final proofs older than that time, in the order of signing, after a position. Ids and times can differ in order only for
 * a moment, so the first young receipt ends the list.
 */
async function listStored(
  db: Kysely<Tables>,
  { after, before, limit }: { after: string; before: number; limit: number },
): Promise<StoredPage> {
  const { rows } = await sql<HeldRow>`
    select r.signing_id::text as id, p.slug, p.ipfs_cid, coalesce(p.created_at < ${new Date(before)}, true) as is_old,
      case when b.status = 'final' and p.created_at < ${new Date(before)} and s.tx_hash is not null then r.bytes end as bytes,
      s.tx_hash, s.digest, s.signature, s.facts
    from (
      select signing_id, bytes from receipts where signing_id > ${after}::bigint order by signing_id limit ${limit}::integer
    ) as r
    left join lateral (
      select slug, ipfs_cid, created_at, publication_id from proofs where signing_id = r.signing_id and status = 'complete' offset 0
    ) as p on true
    left join lateral (select status from publications where id = p.publication_id offset 0) as b on true
    left join lateral (select tx_hash, digest, signature, facts from signings where id = r.signing_id offset 0) as s on true
    order by r.signing_id`.execute(db)
  return {
    receipts: rows.flatMap((row) => {
      const { slug, ipfs_cid: cid, bytes } = row
      if (slug === null || cid === null || bytes === null) return []
      return [{ slug, cid, hash: hash('sha256', unpackReceipt(bytes, row)) }]
    }),
    last: rows.findLast(({ is_old }) => is_old)?.id ?? after,
    isOver: rows.length < limit || rows.at(-1)?.is_old === false,
  }
}

/**
 * Deletes the bytes of these receipts and returns the number deleted. The database rejects any that isn't of a final proof. Skips rows that
 * another worker has deleted or locked.
 */
async function dropReceipts(db: Kysely<Tables>, slugs: readonly string[]): Promise<number> {
  if (slugs.length === 0) return 0
  const { rows } = await sql<{ slug: string }>`
    with wanted as (
      select signing_id, slug from proofs where signing_id = any(${idsOf(slugs)}) order by signing_id for update skip locked
    )
    delete from receipts as r using wanted where r.signing_id = wanted.signing_id returning wanted.slug`.execute(db)
  return rows.length
}

/** The size of receipts in the database, and of those deleted because they are on IPFS. */
export type RetentionCount = {
  /** As PostgreSQL stores them, packed. */
  held: { receipts: number; bytes: number }
  dropped: { receipts: number; bytes: number }
  databaseBytes: number
}

const PAGE = 50_000

/** Counts in pages, so that each statement is short. Doesn't read any receipt. */
export async function countReceipts(db: Kysely<Tables>): Promise<RetentionCount> {
  const count = { held: { receipts: 0, bytes: 0 }, dropped: { receipts: 0, bytes: 0 } }
  let after: string | null = '-1'
  while (after !== null) {
    const { rows }: QueryResult<CountRow> = await sql<CountRow>`
      select max(id)::text as last, count(held)::text as held, coalesce(sum(held), 0)::text as held_bytes,
        count(dropped)::text as dropped, coalesce(sum(dropped), 0)::text as dropped_bytes
      from (
        select p.signing_id as id, pg_column_size(r.bytes) as held, p.receipt_dropped as dropped
        from (
          select signing_id, receipt_dropped from proofs
          where signing_id > ${after}::bigint order by signing_id limit ${PAGE}::integer
        ) as p
        left join receipts as r on r.signing_id = p.signing_id
      ) as page`.execute(db)
    const row: CountRow | undefined = rows[0]
    count.held.receipts += Number(row?.held)
    count.held.bytes += Number(row?.held_bytes)
    count.dropped.receipts += Number(row?.dropped)
    count.dropped.bytes += Number(row?.dropped_bytes)
    after = row?.last ?? null
  }
  const { rows } = await sql<{ bytes: string }>`select pg_database_size(current_database())::text as bytes`.execute(db)
  return { ...count, databaseBytes: Number(rows[0]?.bytes) }
}

type CountRow = Record<'held' | 'held_bytes' | 'dropped' | 'dropped_bytes', string> & { last: string | null }
