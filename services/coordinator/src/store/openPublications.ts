import { type AttestationPublished, type Hex, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, type Selectable, sql } from 'kysely'
import { toBytes } from './bytes.ts'
import { isId, toPublished, toTransactionRow } from './publicationRows.ts'
import type { Tables } from './tables.ts'
import type { OpenPublication, PublicationTransaction, StoredTransaction, UnsentTransaction } from './types.ts'

/* Publications that are not final, and the transactions that were signed for them. */

type TransactionRow = Selectable<Tables['publication_transactions']>

export async function findOpen(db: Kysely<Tables>, chainId: number): Promise<OpenPublication[]> {
  const rows = await db
    .selectFrom('publications')
    .where('status', 'in', ['pending', 'confirmed'])
    .where('chain_id', '=', chainId)
    .orderBy('nonce')
    .orderBy('id')
    .selectAll()
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
    mined:
      row.tx_hash === null || row.block_number === null
        ? undefined
        : { txHash: toPrefixedHex(row.tx_hash), blockNumber: Number(row.block_number) },
    createdAt: row.created_at.getTime(),
    transactions: (byPublication.get(String(row.id)) ?? []).map(toStored),
  }))
}

function toStored(row: TransactionRow): StoredTransaction {
  return {
    hash: toPrefixedHex(row.tx_hash),
    raw: toPrefixedHex(row.raw),
    kind: row.kind,
    gas: BigInt(row.gas),
    maxFeePerGas: BigInt(row.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(row.max_priority_fee_per_gas),
    createdAt: row.created_at.getTime(),
    sentAt: row.sent_at?.getTime(),
  }
}

export async function findProofs(db: Kysely<Tables>, id: number): Promise<AttestationPublished[]> {
  const rows = await db
    .selectFrom('attestations as a')
    .innerJoin('pending_transactions as p', 'p.id', 'a.pending_transaction_id')
    .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
    .where('a.publication_id', '=', id)
    .select(['w.address', 'p.tx_hash', 'a.ipfs_cid'])
    .execute()
  return rows.map(toPublished)
}

/** The newest transaction of each publication none of whose transactions was taken by a node, by nonce. */
export async function findUnsent(
  db: Kysely<Tables>,
  { chainId, account }: { chainId: number; account: Hex },
): Promise<UnsentTransaction[]> {
  const { rows } = await sql<Pick<TransactionRow, 'tx_hash' | 'raw' | 'kind'> & { nonce: string }>`
    select distinct on (p.nonce) p.nonce, t.tx_hash, t.raw, t.kind
    from publications as p join publication_transactions as t on t.publication_id = p.id
    where p.status = 'pending' and p.chain_id = ${chainId} and p.account = ${toBytes(account)}::bytea and not exists (
      select from publication_transactions as s where s.publication_id = p.id and s.sent_at is not null
    )
    order by p.nonce, t.max_fee_per_gas desc, t.created_at desc`.execute(db)
  return rows.map(({ nonce, tx_hash, raw, kind }) => ({
    nonce: Number(nonce),
    hash: toPrefixedHex(tx_hash),
    raw: toPrefixedHex(raw),
    kind,
  }))
}

/** Under a lock of the publication: none is added to one that is being settled. */
export async function addTransaction(
  db: Kysely<Tables>,
  parameters: {
    id: number
    status: OpenPublication['status']
    transaction: PublicationTransaction
    now: number
  },
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

export async function markSent(db: Kysely<Tables>, { hash, now }: { hash: Hex; now: number }): Promise<void> {
  await db
    .updateTable('publication_transactions')
    .set({ sent_at: new Date(now) })
    .where('tx_hash', '=', toBytes(hash))
    .execute()
}
