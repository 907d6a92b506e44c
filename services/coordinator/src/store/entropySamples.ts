import { hash } from 'node:crypto'
import type { Witness } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { isAhead } from '../isAhead.ts'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import { toBytes, toList } from './values.ts'

/** A sample older than a minute is rejected by its age, so after a day the record of its use isn't needed. */
const KEEP_MS = 86_400_000
const PRUNE_EVERY_MS = 3_600_000
/** Old claims to delete along with one claim. A claim adds 256 rows at most, so deleting always catches up. */
const PRUNE_LIMIT = 4_096

/** Claims samples for this coordinator, and deletes old claims hourly. */
export function createSampleClaims(db: Kysely<Tables>) {
  const prune = { at: 0 }
  return async (witnesses: readonly Witness[], now: number): Promise<Witness[]> => {
    const claimed = await claimSamples(db, witnesses, now)
    if (witnesses.length > 0) await pruneSamples({ db, prune }, now)
    return claimed
  }
}

/** One statement in a fixed order: two coordinators with the same samples divide them without deadlock. */
async function claimSamples(db: Kysely<Tables>, witnesses: readonly Witness[], now: number): Promise<Witness[]> {
  if (witnesses.length === 0) return []
  // The protocol's `hashEntropy` with the faster SHA-256, for hundreds of samples per refill.
  const byHash = new Map(witnesses.map((witness) => [hash('sha256', toBytes(witness.valueHex), 'hex'), witness]))
  const { rows } = await sql<{ hash: string }>`${sql.raw(PREPARED)}
    insert into entropy_samples (entropy_hash, claimed_at)
    select decode(hash, 'hex'), ${new Date(now)}::timestamptz from unnest(${toList([...byHash.keys()], 'text')}) as hash order by 1
    on conflict (entropy_hash) do nothing
    returning encode(entropy_hash, 'hex') as hash`.execute(db)
  const claimed = new Set(rows.map(({ hash }) => hash))
  return [...byHash].filter(([hash]) => claimed.has(hash)).map(([, witness]) => witness)
}

/**
 * Deletes some old claims once an hour, and at every claim while there are more. It uses the earlier of our clock and the database's: a fast
 * clock must not delete samples that could be replayed.
 */
async function pruneSamples({ db, prune }: { db: Kysely<Tables>; prune: { at: number } }, now: number): Promise<void> {
  if (isAhead(prune.at, { now, spanMs: PRUNE_EVERY_MS })) return
  prune.at = now + PRUNE_EVERY_MS
  try {
    const { numAffectedRows = 0n } = await sql`
      delete from entropy_samples where entropy_hash = any (array(
        select entropy_hash from entropy_samples
        where claimed_at < least(${new Date(now)}::timestamptz, now()) - ${KEEP_MS / 1000} * interval '1 second'
        order by claimed_at limit ${PRUNE_LIMIT} for update skip locked
      ))`.execute(db)
    if (numAffectedRows >= PRUNE_LIMIT) prune.at = now
  } catch {
    // The samples are claimed anyway. Retry in an hour.
  }
}
