import { toHex } from '@countersign/protocol'
import { type Kysely, type QueryResult, sql } from 'kysely'
import { bind } from './databaseError.ts'
import type { Tables } from './tables.ts'

/** The receipt of a final proof, with SHA-256 of its bytes in the database, hex. */
export type HeldReceipt = { slug: string; cid: string; hash: string }

/** A part of the list. Behind `last` the next one begins, unless it is over: what follows is too young, or nothing. */
type HeldPage = { receipts: HeldReceipt[]; last: string; isOver: boolean }

export const createRetentionStore = (db: Kysely<Tables>) => bind(db, { listHeld, dropReceipts })

export type RetentionStore = ReturnType<typeof createRetentionStore>

type HeldRow = { id: string; slug: string; ipfs_cid: string; is_old: boolean; hash: Uint8Array | null }

/**
 * Receipts of final proofs from before that time, in the order of signing, from the first after that position. Hashed by the database: the
 * bytes stay there. The order of signing is that of time but for moments, so the first young one may
 * end the list.
 */
async function listHeld(
  db: Kysely<Tables>,
  { after, before, limit }: { after: string; before: number; limit: number },
): Promise<HeldPage> {
  const { rows } = await sql<HeldRow>`
    select a.id::text, a.slug, a.ipfs_cid, a.is_old,
      case when a.is_old and exists (select from publications where id = a.publication_id and status = 'final')
        then sha256(a.receipt_bytes) end as hash
    from (
      select pending_transaction_id as id, slug, ipfs_cid, publication_id, receipt_bytes, created_at < ${new Date(before)} as is_old
      from attestations
      where status = 'complete' and receipt_bytes is not null and pending_transaction_id > ${after}::bigint
      order by pending_transaction_id limit ${limit}::integer
    ) as a order by a.id`.execute(db)
  return {
    receipts: rows.flatMap(({ slug, ipfs_cid: cid, hash }) =>
      hash === null ? [] : [{ slug, cid, hash: toHex(hash) }],
    ),
    last: rows.findLast(({ is_old }) => is_old)?.id ?? after,
    isOver: rows.length < limit || rows.at(-1)?.is_old === false,
  }
}

/**
 * The bytes of these receipts go; the database refuses any that is not of a final proof. How many went: another worker may be first, and
 * rows that another transaction has locked are left to it.
 */
async function dropReceipts(db: Kysely<Tables>, slugs: readonly string[]): Promise<number> {
  if (slugs.length === 0) return 0
  const { rows } = await sql<{ slug: string }>`
    with wanted as (
      select slug from attestations where slug = any(${[...slugs]}::text[]) and receipt_bytes is not null
      order by slug for update skip locked
    )
    update attestations as a set receipt_bytes = null from wanted where a.slug = wanted.slug returning a.slug`.execute(
    db,
  )
  return rows.length
}

/** What receipts take in the database, and what they took before they were on IPFS alone. */
export type RetentionCount = {
  /** As PostgreSQL stores them, which compresses. */
  held: { receipts: number; bytes: number }
  dropped: { receipts: number; bytes: number }
  databaseBytes: number
}

const PAGE = 50_000

/** In pages, so that no statement takes long, however many there are. No receipt is read for it. */
export async function countReceipts(db: Kysely<Tables>): Promise<RetentionCount> {
  const count = { held: { receipts: 0, bytes: 0 }, dropped: { receipts: 0, bytes: 0 } }
  let after: string | null = '-1'
  while (after !== null) {
    const { rows }: QueryResult<CountRow> = await sql<CountRow>`
      select max(id)::text as last, count(held)::text as held, coalesce(sum(held), 0)::text as held_bytes,
        count(dropped)::text as dropped, coalesce(sum(dropped), 0)::text as dropped_bytes
      from (
        select pending_transaction_id as id, pg_column_size(receipt_bytes) as held, receipt_dropped as dropped from attestations
        where pending_transaction_id > ${after}::bigint order by pending_transaction_id limit ${PAGE}::integer
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
