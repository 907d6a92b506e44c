import type { AttestationReceiptV1 } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { toPrefixed } from './bytes.ts'
import type { Tables } from './tables.ts'
import type { Proof, ProofState, Transaction } from './types.ts'

/** Above every id. */
const MAX_BIGINT = '9223372036854775807'

export async function findProof(db: Kysely<Tables>, slug: string): Promise<Proof | undefined> {
  const row = await db
    .selectFrom('attestations as a')
    .innerJoin('pending_transactions as p', 'p.id', 'a.pending_transaction_id')
    .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
    .innerJoin('verifications as v', 'v.id', 'a.verification_id')
    .where('a.slug', '=', slug)
    .select(['a.slug', 'p.tx_hash', 'p.chain_id', 'w.address', 'a.status', 'a.ipfs_cid', 'a.created_at'])
    .select(['a.onchain_tx_hash', 'a.onchain_block_number', 'v.quote_verified', 'a.receipt_bytes'])
    .executeTakeFirst()
  return (
    row && {
      slug: row.slug,
      txHash: toPrefixed(row.tx_hash),
      chainId: Number(row.chain_id),
      walletAddress: toPrefixed(row.address),
      status: row.status,
      ipfsCid: row.ipfs_cid,
      onchainTxHash: row.onchain_tx_hash && toPrefixed(row.onchain_tx_hash),
      onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
      kmsQuoteVerified: row.quote_verified,
      // Its bytes are frozen before the pin; specification §2 shows them once the pin is done.
      receipt: row.ipfs_cid === null ? null : parseReceiptBytes(row.receipt_bytes),
      createdAt: row.created_at.getTime(),
    }
  )
}

export async function findProofStates(db: Kysely<Tables>, slugs: readonly string[]): Promise<ProofState[]> {
  if (slugs.length === 0) return []
  const rows = await db
    .selectFrom('attestations')
    // One parameter, however many they are.
    .where('slug', '=', sql<string>`any(${[...slugs]}::text[])`)
    .select(['slug', 'status', 'ipfs_cid', 'onchain_tx_hash', 'onchain_block_number'])
    .execute()
  return rows.map((row) => ({
    slug: row.slug,
    status: row.status,
    ipfsCid: row.ipfs_cid,
    onchainTxHash: row.onchain_tx_hash && toPrefixed(row.onchain_tx_hash),
    onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
  }))
}

type TransactionRow = Pick<Tables['pending_transactions'], 'tx_hash' | 'created_at'> &
  Pick<Tables['attestations'], 'slug' | 'status'> & { id: string; chain_id: string }

/**
 * Wallet, its newest transactions, their proofs: in this order, each by an index. As a range, the wallet leaves the planner no
 * way but the index of wallet and id: by equality it would, where it believes that most rows are of this wallet, go back through
 * everybody's.
 */
export async function listTransactions(
  db: Kysely<Tables>,
  { userId, limit, before }: { userId: string; limit: number; before: string | undefined },
): Promise<Transaction[]> {
  const { rows } = await sql<TransactionRow>`
    select p.id::text, p.tx_hash, p.chain_id::text, p.created_at, a.slug, a.status
    from wallets as w
    join lateral (
      select id, tx_hash, chain_id, created_at from pending_transactions
      where wallet_id between w.id and w.id and id < ${before ?? MAX_BIGINT}::bigint
      order by wallet_id, id desc limit ${limit}::bigint
    ) as p on true
    join lateral (select slug, status from attestations where pending_transaction_id = p.id offset 0) as a on true
    where w.user_id = ${userId}::uuid
    order by p.id desc`.execute(db)
  return rows.map((row) => ({
    id: row.id,
    txHash: toPrefixed(row.tx_hash),
    chainId: Number(row.chain_id),
    slug: row.slug,
    status: row.status,
    createdAt: row.created_at.getTime(),
  }))
}

/** Our own canonical bytes, which the database keeps from changing: no need to check their form at every poll. */
function parseReceiptBytes(bytes: Uint8Array | null): AttestationReceiptV1 | null {
  return bytes && JSON.parse(Buffer.from(bytes).toString('utf8'))
}
