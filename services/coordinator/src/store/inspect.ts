import { type Hex, type ProofStatus, toPrefixedHex } from '@countersign/protocol'
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** A proof as its operator sees it. */
export type InspectedProof = {
  slug: string
  status: ProofStatus
  createdAt: number
  pinAttempts: number
  /** Code of the last thing that went wrong. */
  failure: string | null
  ipfsCid: string | null
  publication: { nonce: number; status: string; transactions: readonly Hex[] } | undefined
}

/** Proofs of one status, the oldest first: what is stuck is at the top. */
export async function listProofs(
  db: Kysely<Tables>,
  { status, limit }: { status: ProofStatus; limit: number },
): Promise<InspectedProof[]> {
  const rows = await db
    .selectFrom('attestations as a')
    .leftJoin('publications as p', 'p.id', 'a.publication_id')
    .where('a.status', '=', status)
    .select(['a.slug', 'a.status', 'a.created_at', 'a.pin_attempts', 'a.failure', 'a.ipfs_cid', 'a.publication_id'])
    .select(['p.nonce', 'p.status as publication_status'])
    .orderBy('a.created_at')
    .limit(limit)
    .execute()
  const ids = [...new Set(rows.flatMap(({ publication_id }) => publication_id ?? []))]
  const transactions =
    ids.length === 0
      ? []
      : await db
          .selectFrom('publication_transactions')
          .where('publication_id', 'in', ids)
          .select(['publication_id', 'tx_hash'])
          .orderBy('created_at')
          .execute()
  return rows.map((row) => ({
    slug: row.slug,
    status: row.status,
    createdAt: row.created_at.getTime(),
    pinAttempts: row.pin_attempts,
    failure: row.failure,
    ipfsCid: row.ipfs_cid,
    publication:
      row.publication_id === null
        ? undefined
        : {
            nonce: Number(row.nonce),
            status: row.publication_status ?? '',
            transactions: transactions
              .filter(({ publication_id }) => String(publication_id) === String(row.publication_id))
              .map(({ tx_hash }) => toPrefixedHex(tx_hash)),
          },
  }))
}

/** The CID under which a receipt was pinned. */
export async function findCid(db: Kysely<Tables>, slug: string): Promise<string | undefined> {
  const row = await db.selectFrom('attestations').where('slug', '=', slug).select('ipfs_cid').executeTakeFirst()
  return row?.ipfs_cid ?? undefined
}

export type ProofCount = { status: ProofStatus; count: number; oldestAt: number }

/** How many proofs still have somewhere to go, and since when the oldest waits; from the index of the open ones. */
export async function countOpenProofs(db: Kysely<Tables>): Promise<ProofCount[]> {
  const rows = await db
    .selectFrom('attestations')
    .where('status', 'in', ['pending_pin', 'pending_onchain'])
    .select(({ fn }) => ['status', fn.countAll().as('count'), fn.min('created_at').as('oldest_at')])
    .groupBy('status')
    .execute()
  return rows.map(({ status, count, oldest_at }) => ({
    status,
    count: Number(count),
    oldestAt: new Date(oldest_at).getTime(),
  }))
}
