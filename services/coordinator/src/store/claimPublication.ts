import type { Hex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { toBytes } from './bytes.ts'
import { CONFIRM_QUEUE, type Jobs } from './jobs.ts'
import { toPublished, toTransactionRow } from './publicationRows.ts'
import type { Tables } from './tables.ts'
import type { ClaimParameters, DueProof, PublishFailure } from './types.ts'

/* How proofs that wait get into a publication, or fail before that. */

const MAX_DUE = 200
/** Until the first check of a new publication. */
const CONFIRM_AFTER_S = 1

export async function findDue(db: Kysely<Tables>): Promise<DueProof[]> {
  const rows = await db
    .selectFrom('attestations as a')
    .innerJoin('pending_transactions as p', 'p.id', 'a.pending_transaction_id')
    .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
    .where('a.status', '=', 'pending_onchain')
    .where('a.publication_id', 'is', null)
    .orderBy('a.pinned_at')
    .orderBy('a.pending_transaction_id')
    .limit(MAX_DUE)
    .select(['a.slug', 'w.address', 'p.tx_hash', 'a.ipfs_cid', 'a.pinned_at', 'a.created_at', 'a.publish_limit'])
    .execute()
  return rows.map((row) => ({
    slug: row.slug,
    ...toPublished(row),
    pinnedAt: (row.pinned_at ?? row.created_at).getTime(),
    publishLimit: row.publish_limit,
  }))
}

export async function findNextNonce(
  db: Kysely<Tables>,
  { chainId, account }: { chainId: number; account: Hex },
): Promise<number> {
  const row = await db
    .selectFrom('publications')
    .where('chain_id', '=', chainId)
    .where('account', '=', toBytes(account))
    .orderBy('nonce', 'desc')
    .limit(1)
    .select('nonce')
    .executeTakeFirst()
  return row === undefined ? 0 : Number(row.nonce) + 1
}

export async function sumGas(
  db: Kysely<Tables>,
  { chainId, account, since }: { chainId: number; account: Hex; since: number },
): Promise<bigint> {
  const { rows } = await sql<{ gas: string }>`
    select coalesce(sum(gas), 0)::text as gas from (
      select max(t.gas) as gas from publications as p join publication_transactions as t on t.publication_id = p.id
      where p.chain_id = ${chainId} and p.account = ${toBytes(account)}::bytea and p.created_at > ${new Date(since)}
      group by p.id
    ) as of_nonces`.execute(db)
  return BigInt(rows[0]?.gas ?? 0)
}

/** Thrown to take back what a transaction has done so far. */
class NotClaimedError extends Error {}

export async function claim(
  { db, jobs }: { db: Kysely<Tables>; jobs: Jobs },
  parameters: ClaimParameters,
): Promise<boolean> {
  const { chainId, account, nonce, contract, calldata, slugs, transaction: signed, now } = parameters
  try {
    await db.transaction().execute(async (transaction) => {
      const publication = await transaction
        .insertInto('publications')
        .values({
          chain_id: chainId,
          account: toBytes(account),
          nonce,
          contract: toBytes(contract),
          calldata: toBytes(calldata),
          created_at: new Date(now),
        })
        .onConflict((conflict) => conflict.columns(['chain_id', 'account', 'nonce']).doNothing())
        .returning('id')
        .executeTakeFirst()
      if (publication === undefined) throw new NotClaimedError()
      // Locked in one order, so that two publishers with the same proofs never wait for each other in a circle.
      const { numAffectedRows } = await sql`
        with wanted as (
          select slug from attestations
          where slug = any(${slugs}::text[]) and status = 'pending_onchain' and publication_id is null
          order by slug for update
        )
        update attestations as a set publication_id = ${Number(publication.id)}::bigint from wanted
        where a.slug = wanted.slug and a.status = 'pending_onchain' and a.publication_id is null`.execute(transaction)
      if (Number(numAffectedRows) !== slugs.length) throw new NotClaimedError()
      await transaction
        .insertInto('publication_transactions')
        .values({ ...toTransactionRow(signed), publication_id: Number(publication.id), created_at: new Date(now) })
        .execute()
      await jobs.insert(transaction, CONFIRM_QUEUE, [{ data: {}, startAfter: CONFIRM_AFTER_S }])
    })
    return true
  } catch (error) {
    if (error instanceof NotClaimedError) return false
    throw error
  }
}

/** Whether the proof was still due. */
export async function failDue(
  db: Kysely<Tables>,
  { slug, failure }: { slug: string; failure: PublishFailure },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('attestations')
    .set({ status: 'onchain_failed', failure })
    .where('slug', '=', slug)
    .where('status', '=', 'pending_onchain')
    .where('publication_id', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

export async function failOverdue(
  db: Kysely<Tables>,
  { pinnedBefore, slugs }: { pinnedBefore: number; slugs?: readonly string[] | undefined },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('attestations')
    .set({ status: 'onchain_failed', failure: 'publish_deadline' satisfies PublishFailure })
    .where('status', '=', 'pending_onchain')
    .where('publication_id', 'is', null)
    .where('pinned_at', '<', new Date(pinnedBefore))
    .$if(slugs !== undefined, (query) => query.where('slug', 'in', slugs ?? []))
    .executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}
