import {
  type Hex,
  type SignatureKind,
  type SignedSummary,
  SUMMARY_DATA_BYTES,
  toPrefixedHex,
} from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import { toList } from './toList.ts'
import type { Proof, ProofState, Transaction } from './types.ts'

/** Above every id. */
const MAX_BIGINT = '9223372036854775807'

type StateRow = Pick<Tables['attestations'], 'slug' | 'status' | 'ipfs_cid' | 'onchain_tx_hash'> & {
  onchain_block_number: string | null
  is_final: boolean
}

type ProofRow = StateRow &
  Pick<Tables['pending_transactions'], 'tx_hash'> &
  Pick<Tables['wallets'], 'address'> &
  Pick<Tables['verifications'], 'quote_verified'> &
  Pick<Tables['attestations'], 'created_at' | 'receipt_bytes' | 'receipt_dropped'> & {
    kind: SignatureKind
    chain_id: string
  }

/** Prepared, because planning took the database eight times as long as running it; and fenced, so that the plan stays the right one. */
export async function findProof(db: Kysely<Tables>, slug: string): Promise<Proof | undefined> {
  const { rows } = await sql<ProofRow>`${sql.raw(PREPARED)}
    select a.slug, a.status, a.ipfs_cid, a.created_at, a.onchain_tx_hash, a.onchain_block_number, a.receipt_bytes,
      a.receipt_dropped, p.kind, p.tx_hash, p.chain_id, w.address, v.quote_verified, coalesce(b.status = 'final', false) as is_final
    from attestations as a
    join lateral (
      select wallet_id, kind, tx_hash, chain_id from pending_transactions where id = a.pending_transaction_id offset 0
    ) as p on true
    join lateral (select address from wallets where id = p.wallet_id offset 0) as w on true
    join lateral (select quote_verified from verifications where id = a.verification_id offset 0) as v on true
    left join lateral (select status from publications where id = a.publication_id offset 0) as b on true
    where a.slug = ${slug}`.execute(db)
  const row = rows[0]
  return (
    row && {
      slug: row.slug,
      kind: row.kind,
      txHash: toPrefixedHex(row.tx_hash),
      chainId: Number(row.chain_id),
      walletAddress: toPrefixedHex(row.address),
      status: row.status,
      ipfsCid: row.ipfs_cid,
      onchainTxHash: row.onchain_tx_hash && toPrefixedHex(row.onchain_tx_hash),
      onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
      kmsQuoteVerified: row.quote_verified,
      // Its bytes are frozen before the pin; specification §2 shows them once the pin is done.
      receipt: row.ipfs_cid === null ? null : row.receipt_bytes,
      ...(row.receipt_dropped === null ? {} : { isDropped: true }),
      createdAt: row.created_at.getTime(),
      isFinal: row.is_final,
    }
  )
}

export async function findProofStates(db: Kysely<Tables>, slugs: readonly string[]): Promise<ProofState[]> {
  if (slugs.length === 0) return []
  const { rows } = await sql<StateRow>`${sql.raw(PREPARED)}
    select a.slug, a.status, a.ipfs_cid, a.onchain_tx_hash, a.onchain_block_number, coalesce(b.status = 'final', false) as is_final
    from attestations as a
    left join lateral (select status from publications where id = a.publication_id offset 0) as b on true
    where a.slug = any(${toList(slugs, 'text')})`.execute(db)
  return rows.map((row) => ({
    slug: row.slug,
    status: row.status,
    ipfsCid: row.ipfs_cid,
    onchainTxHash: row.onchain_tx_hash && toPrefixedHex(row.onchain_tx_hash),
    onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
    isFinal: row.is_final,
  }))
}

type TransactionRow = Pick<Tables['pending_transactions'], 'tx_hash' | 'created_at'> &
  Pick<Tables['attestations'], 'slug' | 'status'> & {
    id: string
    chain_id: string
    vault: Uint8Array | null
  } & SummaryRow

/** Those that a kind does not have are null. */
type SummaryRow = { kind: SignatureKind; to: Hex; value: string; data: Hex; nonce: string; implementation: Hex }

const DATA_CHARACTERS = 2 + 2 * SUMMARY_DATA_BYTES

/**
 * Wallets, the newest transactions of each, their proofs: in this order, each by an index. As a range, the wallet leaves the planner no
 * index that has the order but that of wallet and id: by equality it would, where it believes that most rows are of this wallet, go
 * back through everybody's. And without sorting there is no other way: it does not know how many a wallet has, and would rather read
 * and sort all of them. What it must sort in the end is a page of each wallet.
 */
export async function listTransactions(
  db: Kysely<Tables>,
  { userId, limit, before }: { userId: string; limit: number; before: string | undefined },
): Promise<Transaction[]> {
  const { rows } = await db.transaction().execute(async (transaction) => {
    await sql`set local enable_sort = off`.execute(transaction)
    await sql`set local enable_incremental_sort = off`.execute(transaction)
    return sql<TransactionRow>`
      select p.id::text, p.kind, p.tx_hash, p.chain_id::text, p.created_at, a.slug, a.status,
        content ->> 'to' as to, content ->> 'value' as value, left(content ->> 'data', ${DATA_CHARACTERS}::integer) as data,
        content ->> 'nonce' as nonce, content ->> 'address' as implementation,
        case when w.policy_hash is not null then w.address end as vault
      from wallets as w
      join lateral (
        select id, kind, tx_hash, chain_id, created_at, coalesce(tx_metadata, subject) as content from pending_transactions
        where wallet_id between w.id and w.id and id < ${before ?? MAX_BIGINT}::bigint
        order by wallet_id, id desc limit ${limit}::bigint
      ) as p on true
      join lateral (select slug, status from attestations where pending_transaction_id = p.id offset 0) as a on true
      where w.user_id = ${userId}::uuid
      order by p.id desc limit ${limit}::bigint`.execute(transaction)
  })
  return rows.map((row) => ({
    id: row.id,
    txHash: toPrefixedHex(row.tx_hash),
    chainId: Number(row.chain_id),
    slug: row.slug,
    status: row.status,
    createdAt: row.created_at.getTime(),
    ...(row.vault && { walletAddress: toPrefixedHex(row.vault) }),
    ...toSummary(row),
  }))
}

function toSummary({ kind, to, value, data, nonce, implementation }: SummaryRow): SignedSummary {
  if (kind === 'transaction') return { to, value, data, nonce: Number(nonce) }
  return kind === 'authorization' ? { kind, implementation } : { kind }
}
