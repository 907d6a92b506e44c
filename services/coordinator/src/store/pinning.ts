import { toHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { bind, guard } from './databaseError.ts'
import { findPins } from './findPins.ts'
import { gatherCalls } from './gather.ts'
import { type Jobs, PIN_QUEUE, PUBLISH_QUEUE } from './jobs.ts'
import { createNodeReader } from './logTiles.ts'
import { type KnownColumns, packReceipt, unpackReceipt } from './signings.ts'
import type { Tables } from './tables.ts'
import { bySlug, idsOf, isOpen, takeFirsts, toBytes, toOwnBytes } from './values.ts'

type Bytes = Uint8Array<ArrayBuffer>
type FrozenReceipt = { slug: string; bytes: Uint8Array }
type PinnedProof = { slug: string; cid: string; now: number }

/** Per statement, in hex. One receipt can have half a megabyte. */
const MAX_FROZEN_CHARACTERS = 4_000_000
/** The most proofs to read together. Their size is unknown beforehand, and this many of the largest are megabytes. */
const MAX_FOUND = 32

type PinningDeps = {
  db: Kysely<Tables>
  jobs: Jobs
  /** How long a pinned proof waits for others. Unset: not at all. */
  publishDelayMs?: number
}

/**
 * Reads and writes of the pin stage. Concurrent calls of one kind share the next statement. Failures of the database itself throw
 * `database_unavailable`.
 */
export function createPinningStore(deps: PinningDeps) {
  const { db } = deps
  const fetchNodes = createNodeReader(db)
  const findPin = gatherCalls(
    guard((proofs: readonly { slug: string }[]) => {
      const slugs = proofs.map(({ slug }) => slug)
      return findPins(db, slugs, fetchNodes)
    }),
    { limit: MAX_FOUND },
  )
  return {
    findPin: (slug: string) => findPin({ slug }),
    freezeReceipt: gatherCalls(
      guard((receipts: readonly FrozenReceipt[]) => freezeReceipts(db, receipts)),
      { weight: { of: ({ bytes }) => 2 * bytes.length, limit: MAX_FROZEN_CHARACTERS } },
    ),
    completePin: gatherCalls(guard((pinned: readonly PinnedProof[]) => completePins(deps, pinned))),
    ...bind(db, { findPolicy, completePolicy }),
    ...bind(deps, { recordPinFailure }),
  }
}

export type PinningStore = ReturnType<typeof createPinningStore>

/** The bytes of an unpinned policy. Undefined if it is pinned. */
async function findPolicy(db: Kysely<Tables>, hash: string): Promise<Bytes | undefined> {
  const row = await db
    .selectFrom('policies')
    .where('hash', '=', toBytes(hash))
    .where('pinned_at', 'is', null)
    .select('bytes')
    .executeTakeFirst()
  return row && toOwnBytes(row.bytes)
}

/** Records that the policy's pinned block was read back. */
async function completePolicy(db: Kysely<Tables>, { hash, now }: { hash: string; now: number }): Promise<void> {
  await db
    .updateTable('policies')
    .set({ pinned_at: new Date(now) })
    .where('hash', '=', toBytes(hash))
    .where('pinned_at', 'is', null)
    .execute()
}

/** Counts a failed attempt of a `pending_pin` proof: writes a job for the next attempt or, without `retryAt`, sets `pin_failed`. */
function recordPinFailure(
  { db, jobs }: PinningDeps,
  parameters: { slug: string; failure: string; now: number; retryAt?: number | undefined },
): Promise<void> {
  const { slug, failure, now, retryAt } = parameters
  return db.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('proofs')
      .set(({ eb }) => ({ pin_attempts: eb('pin_attempts', '+', 1), failure }))
      .$if(retryAt === undefined, (update) => update.set({ status: 'pin_failed' }))
      .where('signing_id', '=', bySlug(slug))
      .where(isOpen('pending_pin'))
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n || retryAt === undefined) return
    // A relative delay: the database's clock decides when a job is due, and it may differ from ours.
    await jobs.insert(transaction, PIN_QUEUE, [{ data: { slugs: [slug] }, startAfter: (retryAt - now) / 1000 }])
  })
}

/**
 * Stores the receipts' bytes unless some are stored, and returns the stored ones. Rows are locked in a fixed order, here and below, so that
 * two workers never deadlock.
 */
async function freezeReceipts(db: Kysely<Tables>, receipts: readonly FrozenReceipt[]): Promise<Bytes[]> {
  const given = takeFirsts(receipts, ({ slug }) => slug)
  const slugs = given.map(({ slug }) => slug)
  const rows = await readFrozen(db, slugs)
  const missing = given.flatMap(({ slug, bytes }) => {
    const row = rows.get(slug)
    return row?.bytes === null ? [{ slug, bytes, id: row.signing_id, packed: toHex(packReceipt(bytes, row)) }] : []
  })
  const kept = new Map<string, Uint8Array>(missing.map(({ slug, bytes }) => [slug, bytes]))
  const { numAffectedRows = 0n } =
    missing.length === 0
      ? {}
      : await sql`
    insert into receipts (signing_id, bytes) select id, decode(packed, 'hex')
    from unnest(${missing.map(({ id }) => id)}::bigint[], ${missing.map(({ packed }) => packed)}::text[]) as given (id, packed)
    order by id on conflict do nothing`.execute(db)
  const others = Number(numAffectedRows) < missing.length ? await readFrozen(db, slugs) : rows
  for (const [slug, row] of others) if (row.bytes !== null) kept.set(slug, unpackReceipt(row.bytes, row))
  return receipts.map(({ slug }) => {
    const bytes = kept.get(slug)
    if (bytes === undefined) throw new Error('there is no proof whose receipt could be frozen')
    return toOwnBytes(bytes)
  })
}

type FrozenRow = KnownColumns & { slug: string; signing_id: string; bytes: Uint8Array | null }

async function readFrozen(db: Kysely<Tables>, slugs: readonly string[]): Promise<Map<string, FrozenRow>> {
  const { rows } = await sql<FrozenRow>`
    select l.slug, l.signing_id, s.tx_hash, s.digest, s.signature, s.facts, r.bytes from signing_lookups as l
    join lateral (select tx_hash, digest, signature, facts from signings where id = l.signing_id offset 0) as s on true
    left join lateral (select bytes from receipts where signing_id = l.signing_id offset 0) as r on true
    where l.slug = any(${slugs}::text[])`.execute(db)
  return new Map(rows.map((row) => [row.slug, row]))
}

/** `pending_pin` → `pending_onchain`, with a job to publish. False if another worker was first. */
function completePins(
  { db, jobs, publishDelayMs = 0 }: PinningDeps,
  pinned: readonly PinnedProof[],
): Promise<boolean[]> {
  const given = takeFirsts(pinned, ({ slug }) => slug)
  const slugs = given.map(({ slug }) => slug)
  return db.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ slug: string }>`
      with wanted as (
        select signing_id from proofs
        where signing_id = any(${idsOf(slugs)}) and ${isOpen('pending_pin')} order by signing_id for update
      )
      update proofs as p
      set status = 'pending_onchain', ipfs_cid = given.cid, pinned_at = given.at::timestamptz, failure = null
      from wanted, unnest(
        ${slugs}::text[], ${given.map(({ cid }) => cid)}::text[], ${given.map(({ now }) => new Date(now).toISOString())}::text[]
      ) as given (slug, cid, at)
      where p.signing_id = wanted.signing_id and given.slug = p.slug
      returning p.slug`.execute(transaction)
    const moved = new Set(rows.map(({ slug }) => slug))
    // One waiting job publishes all proofs that are pinned by then. The first proof sets its time.
    if (moved.size > 0) await jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {}, startAfter: publishDelayMs / 1000 }])
    return pinned.map((proof) => given.includes(proof) && moved.has(proof.slug))
  })
}
