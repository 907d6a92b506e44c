import { hash } from 'node:crypto'
import type { Hex, ProofStatus } from '@countersign/protocol'
import { sql } from 'kysely'
import type { QueueName } from '../src/store/jobs.ts'
import { unpackReceipt } from '../src/store/signings.ts'
import type { TestStore } from './store/store.ts'

/** Reads and changes the tables of proofs without the service. */

export type ProofRow = {
  slug: string
  walletId: string
  wallet: Hex
  digest: Hex
  txHash: Hex
  status: ProofStatus
  failure: string | null
  cid: string | null
  /** Of the receipt. */
  receiptHash: string | null
  onchain: string | null
  publicationId: number | null
  attempts: number
  createdAt: number
  pinnedAt: number | null
}
type PublicationRow = { id: number; nonce: number; status: string; createdAt: number }
export type JobRow = { id: string; queue: QueueName; slugs: string[] }
export type Snapshot = { proofs: ProofRow[]; publications: PublicationRow[]; jobs: JobRow[] }

/** Deletes all proofs and jobs. */
export async function clearProofs({ database: { db } }: TestStore): Promise<void> {
  await sql`truncate proofs, receipts, releases, coordinator_blocks, signings, signing_lookups, anchors, publication_transactions, publications, verifications, batches`.execute(
    db,
  )
  await sql`delete from pgboss.job`.execute(db)
}

export async function readSnapshot({ database: { db } }: TestStore): Promise<Snapshot> {
  type Stored = Omit<ProofRow, 'receiptHash'> & { receiptHash: readonly (string | null)[] | null }
  const { rows } = await sql<{ snapshot: Omit<Snapshot, 'proofs'> & { proofs: Stored[] } }>`
    select json_build_object(
      'proofs', coalesce((
        select json_agg(json_build_object(
          'slug', a.slug, 'walletId', p.wallet_id, 'wallet', '0x' || encode(w.address, 'hex'),
          'digest', '0x' || encode(p.digest, 'hex'), 'txHash', '0x' || encode(p.tx_hash, 'hex'),
          'status', a.status, 'failure', a.failure, 'cid', a.ipfs_cid,
          'receiptHash', case when r.bytes is not null then
            json_build_array(encode(r.bytes, 'hex'), encode(p.tx_hash, 'hex'), encode(p.digest, 'hex'), encode(p.signature, 'hex'), encode(p.facts, 'hex')) end,
          'onchain', '0x' || encode(b.tx_hash, 'hex') || '/' || b.block_number,
          'publicationId', a.publication_id, 'attempts', a.pin_attempts,
          'createdAt', (extract(epoch from a.created_at) * 1000)::bigint,
          'pinnedAt', (extract(epoch from a.pinned_at) * 1000)::bigint
        ) order by a.signing_id)
        from proofs as a join signings as p on p.id = a.signing_id join wallets as w on w.id = p.wallet_id
          left join receipts as r on r.signing_id = a.signing_id
          left join publications as b on b.id = a.publication_id and a.status = 'complete'
      ), '[]'),
      'publications', coalesce((
        select json_agg(json_build_object('id', id, 'nonce', nonce, 'status', status,
          'createdAt', (extract(epoch from created_at) * 1000)::bigint) order by id)
        from publications
      ), '[]'),
      'jobs', coalesce((
        select json_agg(json_build_object('id', id, 'queue', name, 'slugs', coalesce(data -> 'slugs', '[]')) order by created_on, id)
        from pgboss.job where state < 'active'
      ), '[]')
    ) as snapshot`.execute(db)
  const snapshot = rows[0]?.snapshot
  if (snapshot === undefined) throw new Error('no snapshot')
  const proofs = snapshot.proofs.map(({ receiptHash: stored, ...proof }) => {
    const [bytes, txHash, digest, signature, facts] =
      stored?.map((hex) => (hex === null ? null : Buffer.from(hex, 'hex'))) ?? []
    if (!bytes || !txHash || !facts) return { ...proof, receiptHash: null }
    const signing = { tx_hash: txHash, digest: digest ?? null, signature: signature ?? null, facts }
    return { ...proof, receiptHash: hash('sha256', unpackReceipt(bytes, signing)) }
  })
  return { ...snapshot, proofs }
}

export async function deleteJobs({ database: { db } }: TestStore, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await sql`delete from pgboss.job where id = any(${ids}::uuid[])`.execute(db)
}

export async function readStoredTransactions({ database: { db } }: TestStore): Promise<Hex[]> {
  const { rows } = await sql<{ raw: Hex }>`
    select '0x' || encode(raw, 'hex') as raw from publication_transactions
    order by publication_id, max_fee_per_gas`.execute(db)
  return rows.map(({ raw }) => raw)
}
