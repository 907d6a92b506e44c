import { hash as computeHash } from 'node:crypto'
import { LOG_ENTRY_BYTES, listTreeNodes } from '@countersign/log'
import { type AppendedEntries, type Hex, isHex, type LogInfo, toHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import { bind, guard, LOCK_NOT_AVAILABLE, toConstraint, toErrorCode } from './databaseError.ts'
import { createNodeReader, type FetchNodes, readBundle, readTiles } from './logTiles.ts'
import { type Database, PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import { toBytes, toDigits } from './values.ts'

/** Claims that a leaf is the wallet's signature of a digest. Off-chain signings have no claims, because each is unique. */
export type Claim = { walletId: string; digest: Hex; leaf: string }

export type CosignedNote = { size: number; note: string }

type LogHead = {
  written: { size: number; note: string; bootId: string; hashes: readonly Uint8Array[] }
  cosigned: CosignedNote | undefined
}

/** Changes of the table whose root is in the log. */
type States = AppendedEntries['states']

/** The newest checkpoint with the last entry of its tree, and the states that were stored after an earlier size. */
export type StoredTable = { size: number; note: string; entry: string; states: States }

/** An arbitrary number, the same in every coordinator, and different from the one in `append_log`. */
const ASKER_LOCK = 0x6c_6f_67_02
const ASKER_WAIT_MS = 2_000
/** 16 bytes of wallet, 32 of digest, 32 of leaf. */
const CLAIM_BYTES = 80
/** The most rows that one statement deletes. */
const MAX_DELETED = 1_024

/** The tables of logs. Written rows never change. A log is identified by the SHA-256 of its origin, in hex. */
export function createLogStore({ db }: Pick<Database, 'db'>, { askerWaitMs = ASKER_WAIT_MS } = {}) {
  const fetchNodes = createNodeReader(db)
  return {
    ...bind(db, { appendLog, releaseClaims, deleteClaims, listLogs, findCosigned, insertNote, readTiles, readBundle }),
    ...bind({ db, fetchNodes }, { findLogHead }),
    ...bind(db, { findTable }),
    readNodes: guard(fetchNodes),
    exclusively: <Result>(hash: string, run: () => Promise<Result>) => exclusively({ db, askerWaitMs }, hash, run),
  }
}

export type LogStore = ReturnType<typeof createLogStore>

/**
 * Appends to a log in one transaction, with one call of a database function under the log's lock: one row with entries, checkpoint and
 * claims, the states of the table, and the hashes of full tiles. Entries that already exist must be equal. Returns `missing` and writes nothing if there is a gap
 * before the entries; otherwise returns the lost claims. A claim can be taken over if its leaf was dropped, its boot has ended, or it is
 * older than `claimMs`.
 */
async function appendLog(
  db: Kysely<Tables>,
  parameters: {
    origin: string
    /** The verifier key. */
    key: string
    bootId: string
    from: number
    entries: readonly Uint8Array[]
    checkpoint: { size: number; root: Uint8Array; note: string }
    claims: readonly Claim[]
    states: States
    claimMs: number
    now: number
  },
): Promise<{ missing: number } | { lost: readonly string[] }> {
  const { origin, key, bootId, from, entries, checkpoint, claims, states, claimMs, now } = parameters
  if (entries.some(({ length }) => length !== LOG_ENTRY_BYTES)) throw new Error('not an entry of a log')
  if (checkpoint.size !== from + entries.length) throw new Error('the entries do not lead to the checkpoint')
  try {
    const { rows } = await sql<{ missing: string | number | null; lost: string[] | null }>`${sql.raw(PREPARED)}
      select missing, lost from append_log(${origin}::text, ${key}::text, ${toBytes(bootId)}::bytea, ${from}::bigint,
        ${Buffer.concat(entries)}::bytea, ${checkpoint.root}::bytea, ${checkpoint.note}::text, ${encodeClaims(claims)}::bytea,
        ${new Date(now - claimMs)}::timestamptz, ${new Date(now)}::timestamptz,
        ${states.map(({ row }) => row)}::integer[], ${states.map(({ state }) => toBytes(state))}::bytea[])`.execute(db)
    const { missing = null, lost } = rows[0] ?? {}
    if (missing !== null) return { missing: Number(missing) }
    const leaves = new Set(lost ?? [])
    return { lost: claims.flatMap(({ leaf }) => (leaves.has(leaf) ? [leaf] : [])) }
  } catch (error) {
    if (toConstraint(error) !== 'logs_same') throw error
    throw new CoordinatorError('attestation_invalid', 'another history of this log is recorded', { cause: error })
  }
}

/** Concatenates wallet, digest and leaf of each, as `read_claims` expects. */
function encodeClaims(claims: readonly Claim[]): Buffer {
  const texts = claims.map(({ walletId, digest, leaf }) => walletId.replaceAll('-', '') + toDigits(digest) + leaf)
  if (texts.some((text) => !isHex(text, CLAIM_BYTES))) throw new Error('not a claim')
  return Buffer.from(texts.join(''), 'hex')
}

/**
 * Deletes expired claims by time. That is cheaper than deleting each by key when its signing is stored. Skips locked rows, because other
 * statements lock them in another order.
 */
async function deleteClaims(db: Kysely<Tables>, before: number): Promise<void> {
  let deleted = MAX_DELETED
  while (deleted === MAX_DELETED) {
    const { numAffectedRows = 0n } = await sql`${sql.raw(PREPARED)}
      delete from claims where ctid = any (array(
        select ctid from claims where created_at < ${new Date(before)}::timestamptz
        order by created_at limit ${MAX_DELETED}::integer for update skip locked
      ))`.execute(db)
    deleted = Number(numAffectedRows)
  }
}

/** Locks claims in the same order as `append_log`. After a crash of PostgreSQL, these claims return until they expire. */
async function releaseClaims(db: Kysely<Tables>, claims: readonly Claim[]): Promise<void> {
  if (claims.length === 0) return
  await sql`delete from claims where ctid = any (array(
    select c.ctid
    from (select request, half from read_claims(${encodeClaims(claims)}::bytea) order by request) as given
    cross join lateral (
      select ctid from claims as c where c.request = given.request and c.leaf = given.half
      offset 0 for update
    ) as c
  ))`.execute(db)
}

async function listLogs(db: Kysely<Tables>): Promise<LogInfo[]> {
  const rows = await db
    .selectFrom('logs')
    .select(({ selectFrom }) => [
      'hash',
      'origin',
      'key',
      selectFrom('log_notes')
        .whereRef('log_id', '=', 'logs.id')
        .select(({ fn }) => fn.max('log_notes.size').as('size'))
        .as('size'),
    ])
    .orderBy('id')
    .execute()
  return rows.map(({ hash, origin, key, size }) => ({ hash: toHex(hash), origin, key, size: Number(size ?? 0) }))
}

type NoteRow = { size: string; note: string }
type CheckpointRow = NoteRow & { boot_id: Uint8Array }

/**
 * Returns undefined for an unknown log. Uses a subquery, as `findCosigned` does: for a join the planner reads and sorts all rows of the log.
 */
async function findLogHead(
  { db, fetchNodes }: { db: Kysely<Tables>; fetchNodes: FetchNodes },
  hash: string,
): Promise<LogHead | undefined> {
  const { rows } = await sql<CheckpointRow>`${sql.raw(PREPARED)}
    select size, note, boot_id from log_appends
    where log_id = (select id from logs where hash = ${toBytes(hash)}::bytea)
    order by size desc limit 1`.execute(db)
  const [written] = rows
  if (written === undefined) return undefined
  const size = Number(written.size)
  const nodes = listTreeNodes(size)
  const hashes = nodes.map(await fetchNodes(hash, nodes))
  const cosigned = await findCosigned(db, hash)
  return { written: { size, note: written.note, bootId: toHex(written.boot_id), hashes }, cosigned }
}

/** Reads in one statement, so that the states are those of the checkpoint. `since` is -1 for all states. */
async function findTable(db: Kysely<Tables>, hash: string, since: number): Promise<StoredTable | undefined> {
  const { rows } = await sql<NoteRow & { entry: Uint8Array; states: Uint8Array | null }>`${sql.raw(PREPARED)}
    select size, note, substr(entries, length(entries) - ${LOG_ENTRY_BYTES - 1}::integer) as entry, (
      select string_agg(int4send(row_index) || int4send(length(state)) || state, ''::bytea order by row_index)
      from log_states where log_id = a.log_id and log_states.size > ${since}::bigint
    ) as states
    from log_appends as a
    where log_id = (select id from logs where hash = ${toBytes(hash)}::bytea)
    order by size desc limit 1`.execute(db)
  const [row] = rows
  if (row === undefined) return undefined
  const packed = Buffer.from(row.states ?? [])
  const states: { row: number; state: string }[] = []
  for (let at = 0; at < packed.length; ) {
    const end = at + 8 + packed.readInt32BE(at + 4)
    states.push({ row: packed.readInt32BE(at), state: packed.toString('hex', at + 8, end) })
    at = end
  }
  return { size: Number(row.size), note: row.note, entry: toHex(row.entry), states }
}

/** The newest cosigned note, or undefined if there is none. */
async function findCosigned(db: Kysely<Tables>, hash: string): Promise<CosignedNote | undefined> {
  const { rows } = await sql<NoteRow>`${sql.raw(PREPARED)}
    select size, note from log_notes
    where log_id = (select id from logs where hash = ${toBytes(hash)}::bytea)
    order by size desc, created_at desc limit 1`.execute(db)
  const [row] = rows
  return row && { size: Number(row.size), note: row.note }
}

/** Stores a cosigned note whose checkpoint is stored. */
async function insertNote(
  db: Kysely<Tables>,
  { hash, size, note, now }: CosignedNote & { hash: string; now: number },
): Promise<void> {
  await sql`${sql.raw(PREPARED)}
    insert into log_notes (hash, log_id, size, note, created_at)
    values (${computeHash('sha256', note, 'buffer')}::bytea, (select id from logs where hash = ${toBytes(hash)}::bytea),
      ${size}::bigint, ${note}::text, ${new Date(now)}::timestamptz)
    on conflict do nothing`.execute(db)
}

/**
 * Runs while no other coordinator does so for this log. After too long a wait it runs anyway, because the witnesses prevent a fork. The lock
 * belongs to a transaction: it ends with the connection if this process dies, and by timeout if it freezes.
 */
async function exclusively<Result>(
  { db, askerWaitMs }: { db: Kysely<Tables>; askerWaitMs: number },
  hash: string,
  run: () => Promise<Result>,
): Promise<Result> {
  const transaction = await guard(() => db.startTransaction().execute())()
  try {
    await guard(() =>
      sql`select set_config('lock_timeout', ${String(askerWaitMs)}, true),
        pg_advisory_xact_lock(${ASKER_LOCK}::integer, ${toBytes(hash).readInt32BE()}::integer)`.execute(transaction),
    )().catch((error: unknown) => {
      if (toErrorCode(error) !== LOCK_NOT_AVAILABLE) throw error
    })
    return await run()
  } finally {
    // The transaction wrote nothing. If the connection is lost, so is the lock.
    await transaction
      .rollback()
      .execute()
      .catch(() => {})
  }
}
