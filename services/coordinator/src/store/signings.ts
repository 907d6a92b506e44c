import { hash } from 'node:crypto'
import { type Hex, type TxMetadata, toCanonicalJson } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import { toBytes, toDigits } from './bytes.ts'
import type { Jobs } from './jobs.ts'
import { PREPARED } from './openDatabase.ts'
import type { SharedHashes, SharedRecords } from './sharedRecords.ts'
import type { Tables } from './tables.ts'
import type { Signed, Signing, SigningBatch } from './types.ts'

type SignedRow = { wallet_id: string; digest: string; signature: string; slug: string }

export async function findSigned(
  db: Kysely<Tables>,
  pairs: readonly { walletId: string; digest: Hex }[],
): Promise<Signed[]> {
  if (pairs.length === 0) return []
  const { rows } = await sql<SignedRow>`${sql.raw(PREPARED)}
    select p.wallet_id, encode(p.digest, 'hex') as digest, encode(p.signature, 'hex') as signature, a.slug
    from (
      select distinct wallet_id, decode(digest, 'hex') as digest
      from unnest(
        ${pairs.map(({ walletId }) => walletId)}::uuid[], ${pairs.map(({ digest }) => toDigits(digest))}::text[]
      ) as asked (wallet_id, digest)
    ) as asked
    join lateral (
      select * from pending_transactions as p where p.wallet_id = asked.wallet_id and p.digest = asked.digest offset 0
    ) as p on true
    join lateral (select slug from attestations where pending_transaction_id = p.id offset 0) as a on true`.execute(db)
  return rows.map(toSigned)
}

export async function insertSignings(
  { db, jobs, sharedRecords }: { db: Kysely<Tables>; jobs: Jobs; sharedRecords: SharedRecords },
  { batch, signings, now }: { batch: SigningBatch; signings: readonly Signing[]; now: number },
): Promise<Signed[]> {
  const first = new Map<string, Signing>()
  for (const signing of signings) {
    const key = toKey({ walletId: signing.walletId, digest: signing.statement.digest })
    if (!first.has(key)) first.set(key, signing)
  }
  if (first.size === 0) return []
  const shared = await sharedRecords.store(batch)
  try {
    const inserted = await insertRows({ db, jobs }, { batch, shared, signings: [...first.values()], now })
    for (const signed of inserted) first.delete(toKey(signed))
    // The others lost to a statement that has committed, or there would have been no conflict. This one sees it; the one before,
    // which may have begun earlier, need not.
    const lost = [...first.values()].map(({ walletId, statement }) => ({ walletId, digest: statement.digest }))
    const earlier = await findSigned(db, lost)
    if (earlier.length !== lost.length) throw new Error('a signing was neither inserted nor found')
    return [...inserted, ...earlier]
  } catch (error) {
    throw toSigningError(error)
  }
}

/**
 * Everything in one statement, and so in one transaction, that only inserts: its plan is good whatever the size of the tables. (`is
 * true` makes the search for the new ones a hash table; as a join, it would compare all with all.) What
 * the signings share is written only if one of them is new. The order by (wallet, digest) is that of all coordinators: two with
 * the same pairs wait for each other, never in a circle.
 */
async function insertRows(
  { db, jobs }: { db: Kysely<Tables>; jobs: Jobs },
  parameters: { batch: SigningBatch; shared: SharedHashes; signings: readonly Signing[]; now: number },
): Promise<Signed[]> {
  const { batch, shared, signings, now } = parameters
  const list = <T>(read: (signing: Signing) => T) => signings.map(read)
  const contentHash = hashBatchContent(batch)
  const at = new Date(now)
  const { rows } = await sql<SignedRow>`${sql.raw(PREPARED)}
    with input as materialized (
      select nextval('pending_transactions_id_seq') as id, slug, wallet_id, decode(digest, 'hex') as digest, decode(signature, 'hex') as signature,
        decode(tx_hash, 'hex') as tx_hash, chain_id, tx_metadata, statement, leaf_index, decode(path, 'hex') as path, witness,
        decode(entropy_hash, 'hex') as entropy_hash, decode(release, 'hex') as release
      from rows from (
        unnest(
          ${list(({ slug }) => slug)}::text[],
          ${list(({ walletId }) => walletId)}::uuid[],
          ${list(({ statement }) => toDigits(statement.digest))}::text[],
          ${list(({ statement }) => toDigits(statement.signature))}::text[],
          ${list(({ statement }) => toDigits(statement.txHash))}::text[],
          ${list(({ statement }) => statement.chainId)}::bigint[],
          ${list(({ leafIndex }) => leafIndex)}::bigint[],
          ${list(({ path }) => path.join(''))}::text[],
          ${list(({ statement }) => statement.entropyHash)}::text[],
          ${list(({ release }) => release)}::text[]
        ),
        jsonb_array_elements(${JSON.stringify(list(({ txMetadata }) => toStoredTx(txMetadata)))}::jsonb),
        jsonb_array_elements(${JSON.stringify(list(({ statement }) => statement))}::jsonb),
        jsonb_array_elements(${JSON.stringify(list(({ witness }) => witness))}::jsonb)
      ) as r (slug, wallet_id, digest, signature, tx_hash, chain_id, leaf_index, path, entropy_hash, release,
        tx_metadata, statement, witness)
    ),
    pending as (
      insert into pending_transactions (id, wallet_id, digest, signature, tx_hash, chain_id, tx_metadata, created_at)
      select id, wallet_id, digest, signature, tx_hash, chain_id, tx_metadata, ${at}::timestamptz
      from input order by wallet_id, digest
      on conflict (wallet_id, digest) do nothing
      returning id
    ),
    batch as (
      insert into batches
        (boot_id, sequence, content_hash, previous, tree_size, quote, event_log, mode, measurement, config, created_at)
      select ${toBytes(batch.bootId)}::bytea, ${batch.sequence}::bigint, ${contentHash}::bytea,
        ${toBytes(batch.previous)}::bytea, ${batch.treeSize}::bigint, ${batch.quote}::bytea, ${batch.eventLog ?? null}::text,
        ${batch.mode}::text, ${JSON.stringify(batch.measurement)}::jsonb, ${JSON.stringify(batch.config)}::jsonb,
        ${at}::timestamptz
      where exists (select from pending)
      on conflict do nothing
    ),
    verification as (
      insert into verifications (boot_id, sequence, content_hash, collateral_hash, self_attestation_hash, coordinator_mode,
        quote_verified, tcb_status, created_at)
      select ${toBytes(batch.bootId)}::bytea, ${batch.sequence}::bigint, ${contentHash}::bytea,
        ${shared.collateralHash}::bytea, ${shared.selfAttestationHash}::bytea, ${batch.coordinatorMode}::text,
        true, ${batch.tcbStatus}::text, ${at}::timestamptz
      where exists (select from pending)
      returning id
    ),
    attestation as (
      insert into attestations (pending_transaction_id, slug, verification_id, statement, leaf_index, path, witness,
        entropy_hash, release, created_at)
      select input.id, slug, verification.id, statement, leaf_index, path, witness, entropy_hash, release,
        ${at}::timestamptz
      from input cross join verification
      where (input.id in (select id from pending)) is true
      returning slug
    ),
    pins as (${sql.raw(jobs.insertPins('attestation'))})
    select slug from attestation`.execute(db)
  const bySlug = new Map(signings.map((signing) => [signing.slug, signing]))
  return rows.flatMap(({ slug }) => {
    const signing = bySlug.get(slug)
    if (!signing) return []
    const { digest, signature } = signing.statement
    return [{ walletId: signing.walletId, digest, signature, slug }]
  })
}

/** What two coordinators must agree on when they bring the same batch. Both got it from one enclave, so they do. */
function hashBatchContent(batch: SigningBatch): Buffer {
  const { bootId, sequence, previous, treeSize, quote, eventLog, mode, measurement, config } = batch
  const content = {
    bootId,
    sequence,
    previous,
    treeSize,
    quote: hash('sha256', quote),
    eventLog: eventLog ?? null,
    mode,
    measurement,
    config,
  }
  return hash('sha256', toCanonicalJson(content), 'buffer')
}

/** The form that goes into receipts. What it says was checked before it was signed. */
function toStoredTx(txMetadata: TxMetadata): TxMetadata {
  return {
    ...txMetadata,
    to: txMetadata.to.toLowerCase() as Hex,
    data: txMetadata.data.toLowerCase() as Hex,
  }
}

function toKey({ walletId, digest }: { walletId: string; digest: Hex }): string {
  return `${walletId.toLowerCase()}/${toDigits(digest)}`
}

function toSigned(row: SignedRow): Signed {
  return { walletId: row.wallet_id, digest: `0x${row.digest}`, signature: `0x${row.signature}`, slug: row.slug }
}

/** Two rules of the database that a caller can break without a fault of the database. */
function toSigningError(error: unknown): unknown {
  const constraint = error instanceof Error && 'constraint' in error ? error.constraint : undefined
  if (constraint === 'verifications_batch_fkey') {
    return new CoordinatorError('attestation_invalid', 'another batch of this number is recorded', { cause: error })
  }
  if (constraint === 'attestations_entropy_hash_key') {
    return new CoordinatorError('entropy_unavailable', 'an entropy sample was used before', { cause: error })
  }
  return error
}

/** In the order of ids, which is an index: as many steps as the position, however much the wallet has signed. */
export async function findSignedAt(
  db: Kysely<Tables>,
  { walletId, position }: { walletId: string; position: number },
): Promise<number | undefined> {
  const row = await db
    .selectFrom('pending_transactions')
    .where('wallet_id', '=', walletId)
    .orderBy('id', 'desc')
    .offset(position - 1)
    .limit(1)
    .select('created_at')
    .executeTakeFirst()
  return row?.created_at.getTime()
}
