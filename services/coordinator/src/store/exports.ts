import { type Hex, type ProofStatus, type SignatureKind, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'

/** A proof as an export lists it; without a CID it is not pinned. */
export type ListedProof = {
  id: string
  slug: string
  cid: string | null
  kind: SignatureKind
  txHash: Hex
  chainId: number
  walletAddress: Hex
  status: ProofStatus
  createdAt: number
  onchainTxHash: Hex | null
  onchainBlockNumber: number | null
}

/** A part of the list. Behind `last` the next one begins; without it there is nothing more, however few proofs a part has. */
export type ListedPage = { proofs: ListedProof[]; last: { id: string; createdAt: number } | undefined }

/** Without a slug it has no proof. */
type ListedRow = {
  id: string
  signed_at: Date
  slug: string | null
  ipfs_cid: string | null
  kind: SignatureKind
  tx_hash: Uint8Array
  chain_id: string
  address: Uint8Array
  status: ProofStatus
  created_at: Date
  onchain_tx_hash: Uint8Array | null
  onchain_block_number: string | null
}

const COLUMNS =
  sql.raw(`p.id::text, p.created_at as signed_at, a.slug, a.ipfs_cid, p.kind, p.tx_hash, p.chain_id::text, w.address, a.status, a.created_at,
  a.onchain_tx_hash, a.onchain_block_number::text`)

/** Above every id. */
const MAX_BIGINT = '9223372036854775807'

/** Of a user, newest first. By the indexes that `listTransactions` takes, and for its reasons. */
export async function listOfUser(
  db: Kysely<Tables>,
  { userId, limit, before = MAX_BIGINT }: { userId: string; limit: number; before?: string | undefined },
): Promise<ListedPage> {
  const { rows } = await db.transaction().execute(async (transaction) => {
    await sql`set local enable_sort = off`.execute(transaction)
    await sql`set local enable_incremental_sort = off`.execute(transaction)
    return sql<ListedRow>`
      select ${COLUMNS}
      from wallets as w
      join lateral (
        select id, kind, tx_hash, chain_id, created_at from pending_transactions
        where wallet_id between w.id and w.id and id < ${before}::bigint
        order by wallet_id, id desc limit ${limit}::bigint
      ) as p on true
      left join lateral (select * from attestations where pending_transaction_id = p.id offset 0) as a on true
      where w.user_id = ${userId}::uuid
      order by p.id desc limit ${limit}::bigint`.execute(transaction)
  })
  return toPage(rows)
}

/** Of all users, in the order of signing, from the first after that position. */
export async function listAfter(
  db: Kysely<Tables>,
  { after, limit }: { after: string; limit: number },
): Promise<ListedPage> {
  const { rows } = await sql<ListedRow>`
    select ${COLUMNS}
    from (
      select id, wallet_id, kind, tx_hash, chain_id, created_at from pending_transactions where id > ${after}::bigint
      order by id limit ${limit}::bigint
    ) as p
    left join attestations as a on a.pending_transaction_id = p.id
    join wallets as w on w.id = p.wallet_id
    order by p.id`.execute(db)
  return toPage(rows)
}

/** The position before the first that was signed at that time or later. Ids and times have one order but for moments, which a caller allows for. */
export async function findPosition(db: Kysely<Tables>, time: number): Promise<string> {
  const { rows } = await sql<{ max: string | null }>`select max(id)::text as max from pending_transactions`.execute(db)
  let [low, high] = [0n, BigInt(rows[0]?.max ?? 0) + 1n]
  while (low < high) {
    const middle = (low + high) / 2n
    const { rows: found } = await sql<{ id: string; created_at: Date }>`
      select id::text, created_at from pending_transactions where id >= ${middle.toString()}::bigint order by id limit 1`.execute(
      db,
    )
    const row = found[0]
    if (row !== undefined && row.created_at.getTime() < time) low = BigInt(row.id) + 1n
    else high = middle
  }
  return (low - 1n).toString()
}

function toPage(rows: readonly ListedRow[]): ListedPage {
  const last = rows.at(-1)
  return {
    proofs: rows.flatMap((row) => (row.slug === null ? [] : [toListed({ ...row, slug: row.slug })])),
    last: last && { id: last.id, createdAt: last.signed_at.getTime() },
  }
}

function toListed(row: ListedRow & { slug: string }): ListedProof {
  return {
    id: row.id,
    slug: row.slug,
    cid: row.ipfs_cid,
    kind: row.kind,
    txHash: toPrefixedHex(row.tx_hash),
    chainId: Number(row.chain_id),
    walletAddress: toPrefixedHex(row.address),
    status: row.status,
    createdAt: row.created_at.getTime(),
    onchainTxHash: row.onchain_tx_hash && toPrefixedHex(row.onchain_tx_hash),
    onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
  }
}
