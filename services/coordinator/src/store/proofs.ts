import {
  type Hex,
  type ProofAnchor,
  type ProofStatus,
  type SignatureKind,
  type SignedSummary,
  SUMMARY_DATA_BYTES,
  toPrefixedHex,
  toSignedSummary,
} from '@countersign/protocol'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { type AnchorRow, readProofAnchor } from './anchors.ts'
import type { FetchNodes } from './logTiles.ts'
import { PREPARED } from './openDatabase.ts'
import { type KnownColumns, unpackFacts, unpackReceipt } from './signings.ts'
import type { Tables } from './tables.ts'
import { bySlug, toList } from './values.ts'

/** The content of `GET /proof/:slug`. */
export type Proof = {
  slug: string
  kind: SignatureKind
  txHash: Hex
  chainId: number
  walletAddress: Hex
  status: ProofStatus
  ipfsCid: string | null
  onchainTxHash: Hex | null
  onchainBlockNumber: number | null
  /** Present if a checkpoint published it. */
  anchor?: ProofAnchor | undefined
  kmsQuoteVerified: boolean
  /** Canonical JSON. */
  receipt: Uint8Array | null
  /** True if the receipt was deleted from the database. Only for final proofs. */
  isDropped?: true
  createdAt: number
  /** True if the publication is final, so the proof can't change. */
  isFinal: boolean
}

/** The parts of a proof that can change. */
export type ProofState = Pick<Proof, 'slug' | 'status' | 'ipfsCid' | 'onchainTxHash' | 'onchainBlockNumber' | 'isFinal'>

/** A row of a user's list. Ids increase and serve as positions in the list. */
export type Transaction = { id: string } & Pick<Proof, 'txHash' | 'chainId' | 'slug' | 'status' | 'createdAt'> & {
    /** For vaults. */
    walletAddress?: Hex
  } & SignedSummary

/** Larger than any id. */
const MAX_BIGINT = '9223372036854775807'

type StateRow = Pick<Tables['proofs'], 'slug' | 'status' | 'ipfs_cid'> & {
  onchain_tx_hash: Uint8Array | null
  onchain_block_number: string | null
  is_final: boolean
}

type ProofRow = StateRow &
  KnownColumns &
  Pick<Tables['wallets'], 'address'> &
  Pick<Tables['verifications'], 'quote_verified'> &
  Pick<Tables['proofs'], 'created_at' | 'receipt_dropped'> & {
    receipt: Uint8Array | null
    kind: SignatureKind
    chain_id: string
  }

/** A complete proof is in the block of its publication. */
const ONCHAIN = sql.raw('b.tx_hash as onchain_tx_hash, b.block_number::text as onchain_block_number')
const PUBLICATION = sql.raw(`left join lateral (
      select status, tx_hash, block_number, chain_id, contract from publications where id = a.publication_id and a.status = 'complete' offset 0
    ) as b on true`)

/** Prepared, because planning takes eight times as long as running; and with an optimization fence, to keep the plan. */
export async function findProof(
  { db, fetchNodes }: { db: Kysely<Tables>; fetchNodes: FetchNodes },
  slug: string,
): Promise<Proof | undefined> {
  const { rows } = await sql<ProofRow & AnchorRow>`${sql.raw(PREPARED)}
    select a.slug, a.status, a.ipfs_cid, a.created_at, ${ONCHAIN}, r.bytes as receipt, a.receipt_dropped, p.kind, p.tx_hash,
      p.chain_id, p.digest, p.signature, p.facts, w.address, v.quote_verified, coalesce(b.status = 'final', false) as is_final,
      n.id as anchor_id, n.size::text as anchor_size, n.hash as anchor_log, p.log_index::text,
      b.chain_id::text as onchain_chain_id, b.contract as onchain_contract
    from signing_lookups as l
    join lateral (select * from proofs where signing_id = l.signing_id offset 0) as a on true
    join lateral (
      select wallet_id, verification_id, kind, tx_hash, chain_id, digest, signature, facts, log_index from signings where id = l.signing_id offset 0
    ) as p on true
    join lateral (select address from wallets where id = p.wallet_id offset 0) as w on true
    join lateral (select quote_verified from verifications where id = p.verification_id offset 0) as v on true
    ${PUBLICATION}
    left join lateral (
      select n.id, n.size, g.hash from anchors as n join logs as g on g.id = n.log_id
      where n.publication_id = a.publication_id and a.status = 'complete' offset 0
    ) as n on true
    left join lateral (select bytes from receipts where signing_id = l.signing_id offset 0) as r on true
    where l.slug = ${slug}`.execute(db)
  const row = rows[0]
  if (row === undefined) return undefined
  const shown = toPublic(row)
  const { onchainTxHash: txHash, onchainBlockNumber: blockNumber } = shown
  const anchor = await readProofAnchor(fetchNodes, row, { txHash, blockNumber })
  return {
    ...shown,
    ...toSigned(row),
    ...(anchor && { anchor }),
    kmsQuoteVerified: row.quote_verified,
    // The bytes are stored before the pin; by specification §2 they are shown after it.
    receipt: row.ipfs_cid === null || row.receipt === null ? null : unpackReceipt(row.receipt, row),
    ...(row.receipt_dropped === null ? {} : { isDropped: true }),
    isFinal: row.is_final,
  }
}

export async function findProofStates(db: Kysely<Tables>, slugs: readonly string[]): Promise<ProofState[]> {
  if (slugs.length === 0) return []
  const { rows } = await sql<StateRow>`${sql.raw(PREPARED)}
    select a.slug, a.status, a.ipfs_cid, ${ONCHAIN}, coalesce(b.status = 'final', false) as is_final
    from signing_lookups as l
    join lateral (select * from proofs where signing_id = l.signing_id offset 0) as a on true
    ${PUBLICATION}
    where l.slug = any(${toList(slugs, 'text')})`.execute(db)
  return rows.map((row) => ({ ...toPublic(row), isFinal: row.is_final }))
}

function toPublic(row: Omit<StateRow, 'is_final'>) {
  return {
    slug: row.slug,
    status: row.status,
    ipfsCid: row.ipfs_cid,
    onchainTxHash: row.onchain_tx_hash && toPrefixedHex(row.onchain_tx_hash),
    onchainBlockNumber: row.onchain_block_number === null ? null : Number(row.onchain_block_number),
  }
}

function toSigned(row: Pick<ProofRow, 'kind' | 'tx_hash' | 'chain_id' | 'address' | 'created_at'>) {
  return {
    kind: row.kind,
    txHash: toPrefixedHex(row.tx_hash),
    chainId: Number(row.chain_id),
    walletAddress: toPrefixedHex(row.address),
    createdAt: row.created_at.getTime(),
  }
}

/** Disables sorting. A scan in index order can stop early; a sort can't. */
async function queryUnsorted<Row>(db: Kysely<Tables>, query: RawBuilder<Row>): Promise<Row[]> {
  const { rows } = await db.transaction().execute(async (transaction) => {
    await sql`set local enable_sort = off`.execute(transaction)
    await sql`set local enable_incremental_sort = off`.execute(transaction)
    return query.execute(transaction)
  })
  return rows
}

type TransactionRow = Pick<
  Tables['signings'],
  'tx_hash' | 'created_at' | 'kind' | 'digest' | 'signature' | 'data' | 'facts'
> &
  Pick<Tables['proofs'], 'slug' | 'status'> & { id: string; chain_id: string; vault: Uint8Array | null }

/**
 * Lists wallets, then the newest transactions of each, then their proofs, each by index. The condition on the wallet is a range: with
 * equality, the planner may scan everyone's transactions by id if it believes that most belong to this wallet. Sorting is disabled because
 * the planner can't know how many rows a wallet has, and would read and sort them all. The final sort covers one page per wallet.
 */
export async function listTransactions(
  db: Kysely<Tables>,
  { userId, limit, before }: { userId: string; limit: number; before: string | undefined },
): Promise<Transaction[]> {
  const rows = await queryUnsorted(
    db,
    sql<TransactionRow>`
      select p.id::text, p.tx_hash, p.chain_id::text, p.created_at, a.slug, a.status, p.kind, p.digest, p.signature, p.facts,
        substr(p.data, 1, ${SUMMARY_DATA_BYTES}::integer) as data,
        case when w.policy_hash is not null then w.address end as vault
      from wallets as w
      join lateral (
        select id, kind, tx_hash, chain_id, created_at, digest, signature, data, facts from signings
        where wallet_id between w.id and w.id and id < ${before ?? MAX_BIGINT}::bigint
        order by wallet_id, id desc limit ${limit}::bigint
      ) as p on true
      join lateral (select slug, status from proofs where signing_id = p.id offset 0) as a on true
      where w.user_id = ${userId}::uuid
      order by p.id desc limit ${limit}::bigint`,
  )
  return rows.map((row) => ({
    id: row.id,
    txHash: toPrefixedHex(row.tx_hash),
    chainId: Number(row.chain_id),
    slug: row.slug,
    status: row.status,
    createdAt: row.created_at.getTime(),
    ...(row.vault && { walletAddress: toPrefixedHex(row.vault) }),
    ...toSignedSummary({ kind: row.kind, subject: unpackFacts(row).subject } as Parameters<typeof toSignedSummary>[0]),
  }))
}

/** A proof in an export. Without a CID it isn't pinned. */
export type ListedProof = { id: string; cid: string | null } & Omit<
  Proof,
  'ipfsCid' | 'kmsQuoteVerified' | 'receipt' | 'isDropped' | 'isFinal'
>

/** A page of the list. The next page starts after `last`; without `last` the list is complete, even if the page is short. */
export type ListedPage = { proofs: ListedProof[]; last: { id: string; createdAt: number } | undefined }

/** Without a slug the row has no proof. */
type ListedRow = Pick<
  ProofRow,
  Exclude<keyof StateRow, 'slug' | 'is_final'> | 'kind' | 'tx_hash' | 'chain_id' | 'address' | 'created_at'
> & {
  id: string
  signed_at: Date
  slug: string | null
}

const COLUMNS = sql`p.id::text, p.created_at as signed_at, a.slug, a.ipfs_cid, p.kind, p.tx_hash, p.chain_id::text, w.address, a.status,
  a.created_at, ${ONCHAIN}`

/** Lists a user's proofs, newest first. Uses the indexes of `listTransactions`, for the same reasons. */
export async function listOfUser(
  db: Kysely<Tables>,
  { userId, limit, before = MAX_BIGINT }: { userId: string; limit: number; before?: string | undefined },
): Promise<ListedPage> {
  const rows = await queryUnsorted(
    db,
    sql<ListedRow>`
      select ${COLUMNS}
      from wallets as w
      join lateral (
        select id, kind, tx_hash, chain_id, created_at from signings
        where wallet_id between w.id and w.id and id < ${before}::bigint
        order by wallet_id, id desc limit ${limit}::bigint
      ) as p on true
      left join lateral (select * from proofs where signing_id = p.id offset 0) as a on true
      ${PUBLICATION}
      where w.user_id = ${userId}::uuid
      order by p.id desc limit ${limit}::bigint`,
  )
  return toPage(rows)
}

/** Lists all users' proofs in the order of signing, after a position. */
export async function listAfter(
  db: Kysely<Tables>,
  { after, limit }: { after: string; limit: number },
): Promise<ListedPage> {
  const { rows } = await sql<ListedRow>`
    select ${COLUMNS}
    from (
      select id, wallet_id, kind, tx_hash, chain_id, created_at from signings where id > ${after}::bigint
      order by id limit ${limit}::bigint
    ) as p
    left join proofs as a on a.signing_id = p.id
    ${PUBLICATION}
    join wallets as w on w.id = p.wallet_id
    order by p.id`.execute(db)
  return toPage(rows)
}

/**
 * The position before the first proof signed at that time or later. Ids and times can differ in order for a moment, which callers allow for.
 */
export async function findPosition(db: Kysely<Tables>, time: number): Promise<string> {
  const { rows } = await sql<{ max: string | null }>`select max(id)::text as max from signings`.execute(db)
  let [low, high] = [0n, BigInt(rows[0]?.max ?? 0) + 1n]
  while (low < high) {
    const middle = (low + high) / 2n
    const { rows: found } = await sql<{ id: string; created_at: Date }>`
      select id::text, created_at from signings where id >= ${middle.toString()}::bigint order by id limit 1`.execute(
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
    proofs: rows.flatMap(({ slug, ...row }) => {
      if (slug === null) return []
      const { ipfsCid: cid, ...state } = toPublic({ ...row, slug })
      return [{ ...state, ...toSigned(row), id: row.id, cid }]
    }),
    last: last && { id: last.id, createdAt: last.signed_at.getTime() },
  }
}

/** A proof as its operator sees it. */
export type InspectedProof = {
  slug: string
  status: ProofStatus
  createdAt: number
  pinAttempts: number
  /** The code of the last failure. */
  failure: string | null
  ipfsCid: string | null
  publication: { nonce: number; status: string; transactions: readonly Hex[] } | undefined
}

/** Lists proofs of one status, oldest first: stuck proofs are at the top. */
export async function listProofs(
  db: Kysely<Tables>,
  { status, limit }: { status: ProofStatus; limit: number },
): Promise<InspectedProof[]> {
  const rows = await db
    .selectFrom('proofs as a')
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

/** The CID of the pinned receipt. */
export async function findCid(db: Kysely<Tables>, slug: string): Promise<string | undefined> {
  const row = await db.selectFrom('proofs').where('signing_id', '=', bySlug(slug)).select('ipfs_cid').executeTakeFirst()
  return row?.ipfs_cid ?? undefined
}

export type ProofCount = { status: ProofStatus; count: number; oldestAt: number }

/** Counts unfinished proofs, with the age of the oldest, from the index of open proofs. */
export async function countOpenProofs(db: Kysely<Tables>): Promise<ProofCount[]> {
  const rows = await db
    .selectFrom('proofs')
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
