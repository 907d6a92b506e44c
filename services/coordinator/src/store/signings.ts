import { hash } from 'node:crypto'
import { parseCheckpoint, parseNote } from '@countersign/log'
import {
  type AnyWitness,
  type Approval,
  type EntropyWitness,
  type Hex,
  hasSignature,
  type Signed,
  type Statement,
  type StatementV2,
  type TxMetadata,
  toCanonicalJson,
  toEventHash,
  toHex,
  toPrefixedHex,
  toSignedDigest,
} from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import type { SharedHashes, SharedRecords, SigningBatch } from './batches.ts'
import { CHECK_VIOLATION, toConstraint, toErrorCode } from './databaseError.ts'
import type { Jobs } from './jobs.ts'
import { PREPARED } from './openDatabase.ts'
import { packBytes, unpackBytes } from './packBytes.ts'
import type { Tables } from './tables.ts'
import { takeFirsts, toBytes, toDigits, toList } from './values.ts'

export type Signing = {
  /** 128 random bits in base64url, used if this is the first signing of its (wallet, digest). */
  slug: string
  walletId: string
  leafIndex: number
} & (
  | {
      version: 1
      statement: Statement
      txMetadata: TxMetadata
      witness: EntropyWitness
      /** The coordinator's release signature: 64 bytes, hex. */
      release: string
    }
  /** For an off-chain kind the subject is the commitment; nothing else of the signature is stored. */
  | {
      version: 2
      statement: StatementV2
      signed: Signed
      witness: AnyWitness
      /** Approvals of a vault's transaction, if there are any. */
      approvals?: readonly Approval[] | undefined
      /** The index of its entry in the batch's log. */
      logIndex?: number | undefined
    }
)

/**
 * The stored signing of a (wallet, digest), from this call or an earlier one. An off-chain signing has only a slug; an address has no
 * signature.
 */
export type StoredSigning = { walletId: string; digest: Hex | null; signature: Hex | null; slug: string }

type StoredRow = { wallet_id: string; digest: string; signature: string | null; slug: string }

export async function findSigned(
  db: Kysely<Tables>,
  pairs: readonly Pick<StoredSigning, 'walletId' | 'digest'>[],
): Promise<StoredSigning[]> {
  if (pairs.length === 0) return []
  const walletIds = pairs.map(({ walletId }) => walletId)
  const digests = pairs.map(({ digest }) => digest && toDigits(digest))
  const { rows } = await sql<StoredRow>`${sql.raw(PREPARED)}
    select p.wallet_id, encode(p.digest, 'hex') as digest, encode(p.signature, 'hex') as signature, l.slug
    from (
      select distinct wallet_id, decode(digest, 'hex') as digest
      from unnest(
        ${toList(walletIds, 'uuid')}, ${toList(digests, 'text')}
      ) as asked (wallet_id, digest)
    ) as asked
    join lateral (
      select signing_id, slug from signing_lookups where request = to_request(asked.wallet_id, asked.digest) offset 0
    ) as l on true
    join lateral (select wallet_id, digest, signature from signings where id = l.signing_id offset 0) as p
      on p.wallet_id = asked.wallet_id and p.digest = asked.digest`.execute(db)
  return rows.map(toStored)
}

type InsertDeps = { db: Kysely<Tables>; jobs: Jobs; sharedRecords: SharedRecords }

export async function insertSignings(
  deps: InsertDeps,
  { batch, signings, now }: { batch: SigningBatch; signings: readonly Signing[]; now: number },
): Promise<StoredSigning[]> {
  const rows = takeFirsts(signings.map(toRow), toKey)
  if (rows.length === 0) return []
  const insert = () => insertWithShared(deps, { batch, rows, now })
  try {
    return await insert().catch(async (error: unknown) => {
      if (isWithoutPartition(error)) await createPartitions(deps.db)
      else if (SHARED_CONSTRAINTS.has(toConstraint(error))) deps.sharedRecords.forget(batch)
      else throw error
      return insert()
    })
  } catch (error) {
    if (toConstraint(error) === CHECKPOINT_CONSTRAINT) deps.sharedRecords.forget(batch)
    throw toSigningError(error)
  }
}

/** Creates partitions ahead for the next million signings. */
export async function createPartitions(db: Kysely<Tables>): Promise<void> {
  await sql`select create_signing_partitions()`.execute(db)
}

async function insertWithShared(
  { db, jobs, sharedRecords }: InsertDeps,
  { batch, rows, now }: { batch: SigningBatch; rows: readonly Row[]; now: number },
): Promise<StoredSigning[]> {
  const shared = await sharedRecords.store(batch)
  const inserted = await insertRows({ db, jobs }, { batch, shared, rows, now })
  const isNew = new Set(inserted.map(({ slug }) => slug))
  // The others conflicted with a committed statement. This query sees its rows; the previous one may have begun too early. A conflicting
  // commitment has no stored signature to return.
  const lost = rows.filter(({ slug, digest }) => !isNew.has(slug) && digest !== null)
  const earlier = await findSigned(db, lost).catch((error: unknown) => {
    // Report stored signings even if others failed.
    if (inserted.length === 0) throw error
    return []
  })
  if (inserted.length === 0 && earlier.length < lost.length) throw new Error('a signing was neither inserted nor found')
  return [...inserted, ...earlier]
}

/** The columns of a signing, for both versions. */
type Row = Pick<Signing, 'slug' | 'walletId' | 'version'> & {
  kind: string
  digest: Hex | null
  signature: Hex | null
  txHash: Hex
  chainId: number
  /** A transaction's data. */
  data: Hex | null
  facts: SigningFacts
  entropyHash: string | null
  release: string | null
  logIndex: number | null
}

/** The parts of a signing without a separate column. */
export type SigningFacts = {
  /** The signed subject without `data`: a transaction's metadata, or the subject. Unset off-chain, where only `tx_hash` is stored. */
  subject?: object | undefined
  /** Version 2 omits the hashes of subject and sample. */
  statement: Statement | Omit<StatementV2, 'subject' | 'witness'>
  witness: AnyWitness
  leafIndex: number
  /** Approvals of a vault's transaction. */
  approvals?: readonly Approval[] | undefined
}

function toRow(signing: Signing): Row {
  const { slug, walletId, version, statement, leafIndex, witness } = signing
  const shared = { slug, walletId, version }
  if (signing.version === 1) {
    const { digest, signature, txHash, chainId, entropyHash } = signing.statement
    const { release } = signing
    const { data, ...subject } = toStoredTx(signing.txMetadata)
    const signed = { kind: 'transaction', digest, signature, txHash, chainId, data, entropyHash }
    return { ...shared, ...signed, facts: { subject, statement, witness, leafIndex }, release, logIndex: null }
  }
  const { signed, approvals, logIndex = null } = signing
  const { subject: _, witness: __, ...stated } = signing.statement
  const { kind } = signed
  const { data = null, ...subject } = signed.kind === 'transaction' ? signed.subject : { ...signed.subject, data: null }
  const { signature, chainId } = hasSignature(signed) ? signed.subject : { signature: null, chainId: 0 }
  const isBeacon = 'kind' in witness
  return {
    ...shared,
    kind,
    signature,
    chainId,
    logIndex,
    data,
    facts: { ...(kind !== 'off-chain' && { subject }), statement: stated, witness, leafIndex, approvals },
    release: null,
    digest: toSignedDigest(signed),
    txHash: toEventHash(signed),
    entropyHash: isBeacon ? null : hash('sha256', Buffer.from(witness.valueHex, 'hex'), 'hex'),
  }
}

/** The columns that serve as dictionary to pack and unpack the facts. */
export type KnownColumns = Pick<Tables['signings'], 'tx_hash' | 'digest' | 'signature' | 'facts'>

/** The JSON of the facts, packed with the other columns. */
function unpackText({ facts, tx_hash: txHash, digest, signature }: KnownColumns): Buffer {
  const known = [txHash, digest, signature].flatMap((bytes) => (bytes === null ? [] : toPrefixedHex(bytes)))
  return unpackBytes(facts, known)
}

/** The facts with the whole subject: a transaction's metadata, or an off-chain commitment. If `data` is truncated, so is the subject's. */
export function unpackFacts(row: KnownColumns & Pick<Tables['signings'], 'data'>): SigningFacts & { subject: object } {
  const { subject = { commitment: toHex(row.tx_hash) }, ...facts }: SigningFacts = JSON.parse(
    unpackText(row).toString(),
  )
  return { ...facts, subject: row.data === null ? subject : { ...subject, data: toPrefixedHex(row.data) } }
}

export const packReceipt = (bytes: Uint8Array, row: KnownColumns): Buffer => packBytes(bytes, [unpackText(row)])

export const unpackReceipt = (packed: Uint8Array, row: KnownColumns): Uint8Array<ArrayBuffer> =>
  new Uint8Array(unpackBytes(packed, [unpackText(row)]))

/**
 * Inserts everything in one statement, and so in one transaction. It finds no rows, so its plan suits tables and arrays of any size. `is
 * true` makes PostgreSQL hash the new rows; a join would compare all with all. Shared rows are written only if a signing is new. All
 * coordinators insert in the order of requests, so they never deadlock.
 */
async function insertRows(
  { db, jobs }: { db: Kysely<Tables>; jobs: Jobs },
  parameters: { batch: SigningBatch; shared: SharedHashes; rows: readonly Row[]; now: number },
): Promise<StoredSigning[]> {
  const { batch, shared, rows: offered, now } = parameters
  const list = <T>(read: (row: Row) => T) => offered.map(read)
  const contentHash = hashBatchContent(batch)
  const note = batch.log && toLogNote(batch.log)
  if (offered.some(({ logIndex }) => logIndex !== null && logIndex >= (note?.size ?? 0))) {
    throw new CoordinatorError('attestation_invalid', 'the note does not cover an entry')
  }
  const at = new Date(now)
  const { rows } = await sql<StoredRow>`${sql.raw(PREPARED)}
    with input as materialized (
      select nextval('signings_id') as id, slug, wallet_id, kind, version, decode(digest, 'hex') as digest,
        decode(signature, 'hex') as signature, decode(tx_hash, 'hex') as tx_hash, chain_id, decode(data, 'hex') as data,
        decode(facts, 'hex') as facts, sample, decode(release, 'hex') as release, log_index,
        to_request(wallet_id, decode(coalesce(digest, tx_hash), 'hex')) as request
      from unnest(
        ${list(({ slug }) => slug)}::text[],
        ${list(({ walletId }) => walletId)}::uuid[],
        ${list(({ kind }) => kind)}::text[],
        ${list(({ version }) => version)}::smallint[],
        ${list(({ digest }) => digest && toDigits(digest))}::text[],
        ${list(({ signature }) => signature && toDigits(signature))}::text[],
        ${list(({ txHash }) => toDigits(txHash))}::text[],
        ${list(({ chainId }) => chainId)}::bigint[],
        ${list(({ data }) => data && toDigits(data))}::text[],
        ${list((row) => packBytes(JSON.stringify(row.facts), toTexts(row)).toString('hex'))}::text[],
        ${list(({ entropyHash }) => entropyHash?.slice(0, 32))}::uuid[],
        ${list(({ release }) => release)}::text[],
        ${list(({ logIndex }) => logIndex)}::bigint[]
      ) as r (slug, wallet_id, kind, version, digest, signature, tx_hash, chain_id, data, facts, sample, release, log_index)
    ),
    lookup as (
      insert into signing_lookups (signing_id, slug, request, sample)
      select id, slug, request, sample from input order by request
      on conflict (request) do nothing
      returning signing_id
    ),
    batch as (
      insert into batches
        (boot_id, sequence, content_hash, previous, leaves, quote, event_log, mode, measurement, config, created_at)
      select ${toBytes(batch.bootId)}::bytea, ${batch.sequence}::bigint, ${contentHash}::bytea,
        ${toBytes(batch.previous)}::bytea, ${toBytes(batch.leaves.join(''))}::bytea, ${batch.quote}::bytea, ${batch.eventLog ?? null}::text,
        ${batch.mode}::text, ${JSON.stringify(batch.measurement)}::jsonb, ${JSON.stringify(batch.config)}::jsonb,
        ${at}::timestamptz
      where exists (select from lookup)
      on conflict do nothing
    ),
    verification as (
      insert into verifications (boot_id, sequence, content_hash, collateral_hash, self_attestation_hash, coordinator_mode,
        quote_verified, tcb_status, coordinator_key, log_note, created_at)
      select ${toBytes(batch.bootId)}::bytea, ${batch.sequence}::bigint, ${contentHash}::bytea,
        ${shared.collateralHash}::bytea, ${shared.selfAttestationHash}::bytea, ${batch.coordinatorMode}::text,
        true, ${batch.tcbStatus}::text, ${batch.release ? toBytes(batch.release.coordinatorKey) : null}::bytea,
        ${note?.hash ?? null}::bytea, ${at}::timestamptz
      where exists (select from lookup)
      returning id
    ),
    ${releaseRow({ batch, shared, contentHash, at })}
    ${noteRow({ note, logId: shared.logId, at })}
    signing as (
      insert into signings (id, wallet_id, verification_id, chain_id, created_at, log_index, version, kind, tx_hash, digest, signature,
        data, facts, release)
      select input.id, wallet_id, verification.id, chain_id, ${at}::timestamptz, log_index, version, kind, tx_hash, digest, signature,
        data, facts, release
      from input cross join verification
      where (input.id in (select signing_id from lookup)) is true
    ),
    proof as (
      insert into proofs (signing_id, slug, created_at)
      select id, slug, ${at}::timestamptz from input
      where (id in (select signing_id from lookup)) is true
      returning slug
    ),
    pins as (${sql.raw(jobs.insertPins('proof'))})
    select slug from proof`.execute(db)
  const bySlug = new Map(offered.map((row) => [row.slug, row]))
  return rows.flatMap(({ slug }) => {
    const row = bySlug.get(slug)
    return row ? [{ walletId: row.walletId, digest: row.digest, signature: row.signature, slug }] : []
  })
}

/** The coordinator's release of the batch. If an earlier transaction stored one, that one counts. */
function releaseRow(parameters: { batch: SigningBatch; shared: SharedHashes; contentHash: Buffer; at: Date }) {
  const { batch, shared, contentHash, at } = parameters
  const { release } = batch
  if (release === undefined) return sql``
  return sql`release as (
      insert into releases (boot_id, sequence, coordinator_key, content_hash, collateral_hash, coordinator_hash, settings,
        ed25519, ml_dsa_65, created_at)
      select ${toBytes(batch.bootId)}::bytea, ${batch.sequence}::bigint, ${toBytes(release.coordinatorKey)}::bytea,
        ${contentHash}::bytea, ${shared.collateralHash}::bytea, ${shared.coordinatorHash}::bytea,
        ${JSON.stringify(batch.settings)}::jsonb, ${release.ed25519}::bytea, ${release.mlDsa65}::bytea, ${at}::timestamptz
      where exists (select from lookup)
      on conflict do nothing
    ),`
}

/** The note that released the statements, if there is a log. Claims expire by themselves. */
function noteRow(parameters: { note: LogNote | undefined; logId: number | undefined; at: Date }) {
  const { note, logId, at } = parameters
  if (note === undefined) return sql``
  return sql`note as (
      insert into log_notes (hash, log_id, size, note, created_at)
      select ${note.hash}::bytea, ${logId}::integer, ${note.size}::bigint, ${note.text}::text, ${at}::timestamptz
      where exists (select from lookup)
      on conflict do nothing
    ),`
}

type LogNote = { hash: Buffer; size: number; text: string }

function toLogNote({ origin, note: text }: NonNullable<SigningBatch['log']>): LogNote {
  const checkpoint = parseCheckpoint(parseNote(text).text)
  if (checkpoint.origin !== origin) throw new CoordinatorError('attestation_invalid', 'a note of another log')
  return { hash: hash('sha256', text, 'buffer'), size: checkpoint.size, text }
}

/** Values that two coordinators with the same batch must agree on. Both received it from one enclave. */
function hashBatchContent(batch: SigningBatch): Buffer {
  const { bootId, sequence, previous, leaves, quote, eventLog, mode, measurement, config, logKey } = batch
  const content = {
    bootId,
    sequence,
    previous,
    treeSize: leaves.length,
    quote: hash('sha256', quote),
    eventLog: eventLog ?? null,
    mode,
    measurement,
    config,
    ...(logKey === undefined ? {} : { logKey }),
  }
  return hash('sha256', toCanonicalJson(content), 'buffer')
}

const toText = (hex: Hex | null) => (hex === null ? [] : [`0x${toDigits(hex)}`])
/** The values that `unpackText` knows, in the same order. */
const toTexts = ({ txHash, digest, signature }: Row) => [txHash, digest, signature].flatMap(toText)

/** The form for receipts. The content was checked before signing. */
function toStoredTx(txMetadata: TxMetadata): TxMetadata {
  return {
    ...txMetadata,
    to: txMetadata.to.toLowerCase() as Hex,
    data: txMetadata.data.toLowerCase() as Hex,
  }
}

/** Off-chain signings are unique, so they use the slug. */
function toKey({ walletId, digest, slug }: Row): string {
  return `${walletId.toLowerCase()}/${digest === null ? slug : toDigits(digest)}`
}

function toStored(row: StoredRow): StoredSigning {
  const signature: Hex | null = row.signature === null ? null : `0x${row.signature}`
  return { walletId: row.wallet_id, digest: `0x${row.digest}`, signature, slug: row.slug }
}

/** Constraints on shared rows that were stored before. A violation means that the database has lost them. */
const SHARED_CONSTRAINTS: ReadonlySet<string> = new Set([
  'verifications_collateral_hash_fkey',
  'verifications_self_attestation_hash_fkey',
  'releases_collateral_hash_fkey',
  'releases_coordinator_hash_fkey',
])

/**
 * The database has lost the checkpoint, or the log has a new number. Not retried, because a log written again may contain another tree of
 * this size.
 */
const CHECKPOINT_CONSTRAINT = 'log_notes_checkpoint_fkey'

/** The ids have reached a partition that doesn't exist yet. */
function isWithoutPartition(error: unknown): boolean {
  return toErrorCode(error) === CHECK_VIOLATION && toConstraint(error) === ''
}

/** Converts violations that a caller can cause. */
function toSigningError(error: unknown): unknown {
  const constraint = toConstraint(error)
  if (constraint === 'verifications_batch_fkey' || constraint === 'releases_batch_fkey') {
    return new CoordinatorError('attestation_invalid', 'another batch of this number is recorded', { cause: error })
  }
  if (constraint === 'signing_lookups_sample_key') {
    return new CoordinatorError('entropy_unavailable', 'an entropy sample was used before', { cause: error })
  }
  if (constraint === CHECKPOINT_CONSTRAINT) {
    return new CoordinatorError('log_unavailable', 'the checkpoint of the log is not recorded', { cause: error })
  }
  return error
}

/** Reads in the order of ids, by index: as many steps per wallet as the position, regardless of how much it has signed. */
export async function findSignedAt(
  db: Kysely<Tables>,
  { userId, position }: { userId: string; position: number },
): Promise<number | undefined> {
  const { rows } = await sql<{ created_at: Date }>`
    select p.created_at from wallets as w
    join lateral (
      select id, created_at from signings where wallet_id = w.id order by id desc limit ${position}::bigint
    ) as p on true
    where w.user_id = ${userId}::uuid
    order by p.id desc offset ${position - 1}::bigint limit 1`.execute(db)
  return rows[0]?.created_at.getTime()
}
