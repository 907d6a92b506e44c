import { type AttestationPublished, type Hex, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { insertAnchor, type PublishedAnchor } from './anchors.ts'
import { bind } from './databaseError.ts'
import { CONFIRM_QUEUE, type Jobs, PUBLISH_QUEUE } from './jobs.ts'
import type { Tables } from './tables.ts'
import { bySlug, idsOf, isOpen, toBytes, toPublished } from './values.ts'

/** Why a proof is `onchain_failed`, stored in `proofs.failure`. */
type PublishFailure =
  /** The deadline passed before the proof was in any transaction. */
  | 'publish_deadline'
  /** The transaction was not mined in time, and its nonce has been used. */
  | 'publish_cancelled'
  /** The contract rejects this one proof. */
  | 'publish_reverted'
  /** The transaction was mined without the expected events. */
  | 'publish_unconfirmed'

/** A pinned proof without a publication. */
export type DueProof = AttestationPublished & {
  slug: string
  /** The most proofs in a publication with this one. */
  publishLimit: number
}

export type PublicationTransaction = {
  hash: Hex
  raw: Hex
  /** A cancel uses the nonce and does nothing else. */
  kind: 'publish' | 'cancel'
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

/** Everything needed to send a transaction. */
export type SignedTransaction = Pick<PublicationTransaction, 'hash' | 'raw' | 'kind'>

export type StoredTransaction = PublicationTransaction & {
  createdAt: number
  /** The last time. Undefined if no node has accepted it. */
  sentAt: number | undefined
}

/** One nonce of an account, with every transaction signed for it. */
export type OpenPublication = {
  id: number
  status: 'pending' | 'confirmed'
  account: Hex
  nonce: number
  contract: Hex
  calldata: Hex
  /** Undefined if it publishes events. */
  anchor: PublishedAnchor | undefined
  /** The block, once confirmed. */
  mined: MinedAt | undefined
  createdAt: number
  /** Ordered by fee. A replacement pays more, so the last is the newest. */
  transactions: StoredTransaction[]
}

type MinedAt = { txHash: Hex; blockNumber: number }
type Mined = { id: number } & MinedAt
type Deps = { db: Kysely<Tables>; jobs: Jobs }
type TransactionRow = Selectable<Tables['publication_transactions']>

const MAX_DUE = 200
/** The delay before the first check of a new publication. */
const CONFIRM_AFTER_S = 1

/**
 * Reads and writes of the publish and confirm stages. Each change depends on the state that the caller has read, and returns whether it was
 * made. Failures of the database itself throw `database_unavailable`.
 */
export function createPublicationStore(deps: Deps) {
  return {
    ...bind(deps.db, { findDue, findNextNonce, sumGas, failDue, failOverdue, findOpen, findUnsent, findProofs }),
    ...bind(deps.db, { addTransaction, markSent, confirm, move, finish, fail }),
    ...bind(deps, { claim, revert, release }),
  }
}

export type PublicationStore = ReturnType<typeof createPublicationStore>

/**
 * Up to 200 pinned proofs without a publication, in the order of pinning. `unlogged`: only those without a log entry, and those with these
 * slugs.
 */
async function findDue(
  db: Kysely<Tables>,
  { unlogged }: { unlogged?: { also: readonly string[] } | undefined } = {},
): Promise<DueProof[]> {
  const rows = await db
    .selectFrom('proofs as a')
    .innerJoin('signings as p', 'p.id', 'a.signing_id')
    .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
    .where('a.status', '=', 'pending_onchain')
    .where('a.publication_id', 'is', null)
    .$if(unlogged !== undefined, (query) =>
      query.where(sql<boolean>`(p.log_index is null or a.signing_id = any(${idsOf(unlogged?.also ?? [])}))`),
    )
    .orderBy('a.pinned_at')
    .orderBy('a.signing_id')
    .limit(MAX_DUE)
    .select(['a.slug', 'w.address', 'p.tx_hash', 'a.ipfs_cid', 'a.publish_limit'])
    .execute()
  return rows.map((row) => ({ slug: row.slug, ...toPublished(row), publishLimit: row.publish_limit }))
}

/** One more than the highest stored nonce, or 0. */
async function findNextNonce(
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

/** The sum of gas limits of publications created since then. Of the transactions with one nonce only one is mined, so one counts. */
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

/** Thrown to roll back a transaction. */
class NotClaimedError extends Error {}

/**
 * Stores, in one transaction, the nonce, the proofs, the signed bytes and the job that confirms them. Returns false and writes nothing if
 * another publication has the nonce or one of the proofs.
 */
async function claim(
  { db, jobs }: Deps,
  parameters: Pick<OpenPublication, 'account' | 'nonce' | 'contract' | 'calldata'> & {
    chainId: number
    /** Empty for a transaction that only fills a gap in the nonces. */
    slugs: readonly string[]
    /** The checkpoint, and the size on the chain that it continues. */
    anchor?: { published: PublishedAnchor; head: number } | undefined
    transaction: PublicationTransaction
    now: number
  },
): Promise<boolean> {
  const { chainId, account, nonce, contract, calldata, slugs, anchor, transaction: signed, now } = parameters
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
      // Locks in a fixed order, so that two publishers with the same proofs never deadlock.
      const { numAffectedRows } = await sql`
        with wanted as (
          select signing_id from proofs
          where signing_id = any(${idsOf(slugs)}) and ${isOpen('pending_onchain')} and publication_id is null
          order by signing_id for update
        )
        update proofs as a set publication_id = ${Number(publication.id)}::bigint from wanted
        where a.signing_id = wanted.signing_id`.execute(transaction)
      if (Number(numAffectedRows) !== slugs.length) throw new NotClaimedError()
      if (anchor !== undefined) {
        const { published, head } = anchor
        const inserted = { publicationId: Number(publication.id), chainId, contract, anchor: published, head }
        if (!(await insertAnchor(transaction, inserted))) throw new NotClaimedError()
      }
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

/** `pending_onchain` → `onchain_failed`, for a proof without a publication. */
async function failDue(
  db: Kysely<Tables>,
  { slug, failure }: { slug: string; failure: PublishFailure },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('proofs')
    .set({ status: 'onchain_failed', failure })
    .where('signing_id', '=', bySlug(slug))
    .where(isOpen('pending_onchain'))
    .where('publication_id', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** `pending_onchain` → `onchain_failed`, for unpublished proofs that were pinned before then. Returns their number. */
async function failOverdue(
  db: Kysely<Tables>,
  { pinnedBefore, slugs }: { pinnedBefore: number; slugs?: readonly string[] | undefined },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('proofs')
    .set({ status: 'onchain_failed', failure: 'publish_deadline' satisfies PublishFailure })
    .where('status', '=', 'pending_onchain')
    .where('publication_id', 'is', null)
    .where('pinned_at', '<', new Date(pinnedBefore))
    .$if(slugs !== undefined, (query) => query.where(sql<boolean>`signing_id = any(${idsOf(slugs ?? [])})`))
    .executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

/** Pending and confirmed publications, by nonce. */
async function findOpen(db: Kysely<Tables>, chainId: number): Promise<OpenPublication[]> {
  const rows = await db
    .selectFrom('publications as p')
    .leftJoin('anchors as a', 'a.publication_id', 'p.id')
    .where('p.status', 'in', ['pending', 'confirmed'])
    .where('p.chain_id', '=', chainId)
    .orderBy('p.nonce')
    .orderBy('p.id')
    .selectAll('p')
    .select(['a.log_id', 'a.id as anchor_id', 'a.size', 'a.block'])
    .execute()
  const ids = rows.map(({ id }) => Number(id))
  const { rows: transactions } = await sql<TransactionRow>`
    select publication_id, tx_hash, raw, kind, gas, max_fee_per_gas, max_priority_fee_per_gas, created_at, sent_at
    from publication_transactions where publication_id = any(${ids}::bigint[])
    order by max_fee_per_gas, created_at`.execute(db)
  const byPublication = Map.groupBy(transactions, (item) => String(item.publication_id))
  return rows.map((row) => ({
    id: Number(row.id),
    status: row.status as OpenPublication['status'],
    account: toPrefixedHex(row.account),
    nonce: Number(row.nonce),
    contract: toPrefixedHex(row.contract),
    calldata: toPrefixedHex(row.calldata),
    anchor: toAnchor(row),
    mined:
      row.tx_hash === null || row.block_number === null
        ? undefined
        : { txHash: toPrefixedHex(row.tx_hash), blockNumber: Number(row.block_number) },
    createdAt: row.created_at.getTime(),
    transactions: (byPublication.get(String(row.id)) ?? []).map(toStored),
  }))
}

type AnchorColumns = { [Name in 'log_id' | 'size']: number | string | bigint | null } & {
  [Name in 'anchor_id' | 'block']: Uint8Array | null
}

function toAnchor({ log_id: logId, anchor_id: id, size, block }: AnchorColumns): PublishedAnchor | undefined {
  if (logId === null || id === null || block === null) return undefined
  return { logId: Number(logId), id: toPrefixedHex(id), size: Number(size), block: toPrefixedHex(block) }
}

function toStored(row: TransactionRow): StoredTransaction {
  return {
    ...toSigned(row),
    gas: BigInt(row.gas),
    maxFeePerGas: BigInt(row.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(row.max_priority_fee_per_gas),
    createdAt: row.created_at.getTime(),
    sentAt: row.sent_at?.getTime(),
  }
}

function toSigned({ tx_hash, raw, kind }: Pick<TransactionRow, 'tx_hash' | 'raw' | 'kind'>): SignedTransaction {
  return { hash: toPrefixedHex(tx_hash), raw: toPrefixedHex(raw), kind }
}

/** The proofs that a publication's events must contain. */
async function findProofs(db: Kysely<Tables>, id: number): Promise<AttestationPublished[]> {
  const rows = await db
    .selectFrom('proofs as a')
    .innerJoin('signings as p', 'p.id', 'a.signing_id')
    .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
    .where('a.publication_id', '=', id)
    .select(['w.address', 'p.tx_hash', 'a.ipfs_cid'])
    .execute()
  return rows.map(toPublished)
}

/** The newest transaction of each pending publication that no node has accepted, by nonce. */
async function findUnsent(
  db: Kysely<Tables>,
  { chainId, account }: { chainId: number; account: Hex },
): Promise<(SignedTransaction & { nonce: number })[]> {
  const { rows } = await sql<Pick<TransactionRow, 'tx_hash' | 'raw' | 'kind'> & { nonce: string }>`
    select distinct on (p.nonce) p.nonce, t.tx_hash, t.raw, t.kind
    from publications as p join publication_transactions as t on t.publication_id = p.id
    where p.status = 'pending' and p.chain_id = ${chainId} and p.account = ${toBytes(account)}::bytea and not exists (
      select from publication_transactions as s where s.publication_id = p.id and s.sent_at is not null
    )
    order by p.nonce, t.max_fee_per_gas desc, t.created_at desc`.execute(db)
  return rows.map((row) => ({ nonce: Number(row.nonce), ...toSigned(row) }))
}

/**
 * Adds a replacement if the publication still has that status. Returns false also if these bytes are already stored. Locks the publication,
 * so that none is added while its status changes.
 */
async function addTransaction(
  db: Kysely<Tables>,
  parameters: Pick<OpenPublication, 'id' | 'status'> & { transaction: PublicationTransaction; now: number },
): Promise<boolean> {
  const { id, status, transaction: signed, now } = parameters
  return db.transaction().execute(async (transaction) => {
    const open = await transaction
      .selectFrom('publications')
      .where(isId(id))
      .where('status', '=', status)
      .select('status')
      .forUpdate()
      .executeTakeFirst()
    if (open === undefined) return false
    const { numInsertedOrUpdatedRows = 0n } = await transaction
      .insertInto('publication_transactions')
      .values({ ...toTransactionRow(signed), publication_id: id, created_at: new Date(now) })
      .onConflict((conflict) => conflict.column('tx_hash').doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows === 1n
  })
}

/** Kysely's type for a generated key doesn't compare with numbers. */
const isId = (id: number) => sql<boolean>`id = ${id}`

function toTransactionRow({ hash, raw, kind, gas, maxFeePerGas, maxPriorityFeePerGas }: PublicationTransaction) {
  return {
    tx_hash: toBytes(hash),
    kind,
    raw: toBytes(raw),
    gas: gas.toString(),
    max_fee_per_gas: maxFeePerGas.toString(),
    max_priority_fee_per_gas: maxPriorityFeePerGas.toString(),
  }
}

async function markSent(db: Kysely<Tables>, { hash, now }: { hash: Hex; now: number }): Promise<void> {
  await db
    .updateTable('publication_transactions')
    .set({ sent_at: new Date(now) })
    .where('tx_hash', '=', toBytes(hash))
    .execute()
}

/** pending → confirmed, its proofs → `complete`. */
function confirm(db: Kysely<Tables>, { id, ...mined }: Mined): Promise<boolean> {
  return changeStatus(db, { id, from: 'pending', to: 'confirmed', ...mined }, (transaction) =>
    updateProofs(transaction, id, { status: 'complete' }),
  )
}

/** The publication is now in another block, or was mined with another of its transactions. */
function move(db: Kysely<Tables>, { id, ...mined }: Mined): Promise<boolean> {
  return changeStatus(db, { id, from: 'confirmed', to: 'confirmed', ...mined })
}

/** confirmed → final. */
function finish(db: Kysely<Tables>, { id }: { id: number }): Promise<boolean> {
  return changeStatus(db, { id, from: 'confirmed', to: 'final' })
}

/**
 * pending → reverted. Several proofs become due again, in halves; a single one → `onchain_failed`. `isRefused`: the account may not publish,
 * which isn't the proof's fault, so a single proof becomes due again too.
 */
function revert({ db, jobs }: Deps, { id, isRefused = false, ...mined }: Mined & { isRefused?: boolean }) {
  return changeStatus(db, { id, from: 'pending', to: 'reverted', ...mined }, async (transaction) => {
    const { count } = await transaction
      .selectFrom('proofs')
      .where('publication_id', '=', id)
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow()
    const size = Number(count)
    if (size > 1 || isRefused) return makeDue({ transaction, jobs }, { id, publishLimit: Math.ceil(size / 2) })
    await updateProofs(transaction, id, { status: 'onchain_failed', failure: 'publish_reverted' })
  })
}

/** pending → reverted or cancelled, all its proofs → `onchain_failed`. */
function fail(
  db: Kysely<Tables>,
  { id, status, failure, ...mined }: Mined & { status: 'reverted' | 'cancelled'; failure: PublishFailure },
): Promise<boolean> {
  return changeStatus(db, { id, from: 'pending', to: status, ...mined }, (transaction) =>
    updateProofs(transaction, id, { status: 'onchain_failed', failure }),
  )
}

/**
 * pending → lost: another sender used the nonce, finally. Or pending → reverted or cancelled, for a checkpoint. No proof is at fault, so all
 * become due again together.
 */
function release(
  { db, jobs }: Deps,
  { id, status, ...mined }: { id: number; status: 'lost' | 'reverted' | 'cancelled' } & Partial<MinedAt>,
): Promise<boolean> {
  return changeStatus(db, { id, from: 'pending', to: status, ...mined }, (transaction) =>
    makeDue({ transaction, jobs }, { id }),
  )
}

type Settling = {
  id: number
  from: OpenPublication['status']
  to: Exclude<Selectable<Tables['publications']>['status'], 'pending'>
} & Partial<MinedAt>

/** Changes a publication and its proofs in one transaction. Of two concurrent callers one succeeds. */
function changeStatus(
  db: Kysely<Tables>,
  { id, from, to, txHash, blockNumber }: Settling,
  andThen: (transaction: Transaction<Tables>) => Promise<void> = async () => {},
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('publications')
      .set({ status: to })
      .$if(txHash !== undefined && blockNumber !== undefined, (update) =>
        update.set({ tx_hash: toBytes(txHash ?? ''), block_number: blockNumber ?? 0 }),
      )
      .where(isId(id))
      .where('status', '=', from)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    await andThen(transaction)
    return true
  })
}

type ProofChanges = {
  status?: 'complete' | 'onchain_failed'
  failure?: PublishFailure
  publication_id?: null
  publish_limit?: number
}

/** Changes only proofs that are `pending_onchain`. */
async function updateProofs(transaction: Transaction<Tables>, id: number, changes: ProofChanges): Promise<void> {
  await transaction
    .updateTable('proofs')
    .set(changes)
    .where('publication_id', '=', id)
    .where('status', '=', 'pending_onchain')
    .execute()
}

/** Makes the proofs due again, with a job that publishes them. */
async function makeDue(
  { transaction, jobs }: { transaction: Transaction<Tables>; jobs: Jobs },
  { id, publishLimit }: { id: number; publishLimit?: number },
): Promise<void> {
  await updateProofs(transaction, id, {
    publication_id: null,
    ...(publishLimit === undefined ? {} : { publish_limit: publishLimit }),
  })
  await jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {} }])
}
