import type { WebhookEvent } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { toBytes } from './bytes.ts'
import { guard } from './databaseError.ts'
import { gatherCalls } from './gatherCalls.ts'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import type { WebhookStatus } from './types.ts'

/** A receiver by the SHA-256 of its URL (hex), and what of the URL may be shown. */
export type NamedReceiver = { urlHash: string; origin: string }

/** What is to be sent to one receiver. `attempts` counts this one too. */
export type DueWebhook = { event: WebhookEvent; receiverId: number; attempts: number }

export type WebhookOutcome = {
  eventId: string
  receiverId: number
  /** Undefined where it was delivered. */
  failure: string | undefined
  /** When to try again. */
  delayMs: number
  /** How long after it was queued it is given up. */
  deadlineMs: number
}

/** What workers read and write to deliver webhooks. Failures of the database itself throw `database_unavailable`. */
export type WebhookStore = {
  /**
   * From now on these receivers get what happens, and no others; and these keys (32 bytes) sign. Returns the receivers' ids, in their
   * order, and how many others got it until now.
   */
  register(parameters: {
    receivers: readonly NamedReceiver[]
    keys: readonly Uint8Array[]
    now: number
  }): Promise<{ ids: number[]; switchedOff: number }>
  /** How many of these get nothing new, because somebody has registered others since. */
  countInactive(receiverIds: readonly number[]): Promise<number>
  /** Takes what is due, the longest due first. What is not settled within the lease is due again. */
  claim(parameters: { receiverId: number; limit: number; leaseMs: number }): Promise<DueWebhook[]>
  /** How it is now. What was delivered stays so, whatever another worker says of it later. */
  settle(outcome: WebhookOutcome): Promise<WebhookStatus>
  /** Deletes some of what was delivered long ago, and of what was queued very long ago. One worker does it at a time; for another there is nothing left. */
  forget(parameters: { deliveredBefore: number; queuedBefore: number }): Promise<Forgotten>
}

/** `undelivered` counts those that never arrived; `isOver`: no others are as old. */
type Forgotten = { undelivered: number; isOver: boolean }

/** Of one statement. */
const MAX_FORGOTTEN = 5_000
/** Of the lock under which webhooks are forgotten. */
const FORGET_LOCK = 0x77_68_6b_02

export function createWebhookStore(db: Kysely<Tables>, { maxForgotten = MAX_FORGOTTEN } = {}): WebhookStore {
  return {
    register: guard((parameters) => register(db, parameters)),
    claim: guard((parameters) => claim(db, parameters)),
    settle: gatherCalls(guard((outcomes: readonly WebhookOutcome[]) => settle(db, outcomes))),
    countInactive: guard((receiverIds) => countInactive(db, receiverIds)),
    forget: guard((parameters) => forget(db, { ...parameters, limit: maxForgotten })),
  }
}

function register(
  db: Kysely<Tables>,
  { receivers, keys, now }: { receivers: readonly NamedReceiver[]; keys: readonly Uint8Array[]; now: number },
): Promise<{ ids: number[]; switchedOff: number }> {
  const hashes = receivers.map(({ urlHash }) => urlHash)
  return db.transaction().execute(async (transaction) => {
    // Two workers that start at once must not undo half of each other's list.
    await sql`lock table webhook_receivers in share row exclusive mode`.execute(transaction)
    const { rows: others } = await sql`update webhook_receivers set is_active = false
      where is_active and encode(url_hash, 'hex') <> all(${hashes}::text[]) returning id`.execute(transaction)
    await sql`update webhook_keys set place = null where place is not null`.execute(transaction)
    for (const [place, key] of keys.entries()) {
      await transaction
        .insertInto('webhook_keys')
        .values({ key, place, created_at: new Date(now) })
        .onConflict((conflict) => conflict.column('key').doUpdateSet({ place }))
        .execute()
    }
    const ids: number[] = []
    for (const { urlHash, origin } of receivers) {
      const { id } = await transaction
        .insertInto('webhook_receivers')
        .values({ url_hash: toBytes(urlHash), origin, is_active: true })
        .onConflict((conflict) => conflict.column('url_hash').doUpdateSet({ origin, is_active: true }))
        .returning('id')
        .executeTakeFirstOrThrow()
      ids.push(id)
    }
    return { ids, switchedOff: others.length }
  })
}

async function countInactive(db: Kysely<Tables>, receiverIds: readonly number[]): Promise<number> {
  const { rows } = await sql<{ count: string }>`select count(*) as count from webhook_receivers
    where not is_active and id = any(${receiverIds}::integer[])`.execute(db)
  return Number(rows[0]?.count)
}

/**
 * Row by row of what was delivered or not, each found by its own index, and an event with its last row: what stays is not looked at
 * again and again. The lock keeps two workers from leaving an event to each other.
 */
function forget(
  db: Kysely<Tables>,
  { deliveredBefore, queuedBefore, limit }: { deliveredBefore: number; queuedBefore: number; limit: number },
): Promise<Forgotten> {
  return db.transaction().execute(async (transaction) => {
    const lock = sql<{ is_ours: boolean }>`select pg_try_advisory_xact_lock(${FORGET_LOCK}::bigint) as is_ours`
    const { rows } = await lock.execute(transaction)
    if (rows[0]?.is_ours !== true) return { undelivered: 0, isOver: true }
    const lists: { event_id: string }[][] = []
    for (const [status, column, before] of [
      ['delivered', 'settled_at', deliveredBefore],
      ['pending', 'queued_at', queuedBefore],
      ['dead', 'queued_at', queuedBefore],
    ] as const) {
      // One that a worker settles just now is for the next time.
      const { rows: deleted } = await sql<{ event_id: string }>`
        delete from webhook_deliveries where (event_id, receiver_id) in (
          select d.event_id, d.receiver_id from webhook_receivers as r join webhook_deliveries as d on d.receiver_id = r.id
          where d.status = ${sql.lit(status)} and d.${sql.ref(column)} < ${new Date(before)}::timestamptz
          limit ${limit}::bigint for update of d skip locked
        ) returning event_id`.execute(transaction)
      lists.push(deleted)
    }
    await sql`delete from webhook_events as e where id = any(${lists.flat().map(({ event_id }) => event_id)}::text[])
      and not exists (select from webhook_deliveries where event_id = e.id)`.execute(transaction)
    const [, pending = [], dead = []] = lists
    return { undelivered: pending.length + dead.length, isOver: lists.every(({ length }) => length < limit) }
  })
}

async function claim(
  db: Kysely<Tables>,
  { receiverId, limit, leaseMs }: { receiverId: number; limit: number; leaseMs: number },
): Promise<DueWebhook[]> {
  type Row = { id: string; type: string; data: unknown; created_at: Date; attempts: number }
  const { rows } = await sql<Row>`${sql.raw(PREPARED)}
    with due as (
      select event_id from webhook_deliveries
      where receiver_id = ${receiverId}::integer and status = 'pending' and due_at <= now()
      order by due_at limit ${limit}::bigint for update skip locked
    )
    update webhook_deliveries as d
    set due_at = now() + ${leaseMs}::bigint * interval '1 millisecond', attempts = d.attempts + 1
    from due join webhook_events as e on e.id = due.event_id
    where d.event_id = due.event_id and d.receiver_id = ${receiverId}::integer
    returning e.id, e.type, e.data, e.created_at, d.attempts`.execute(db)
  return rows.map(({ id, type, data, created_at, attempts }) => ({
    event: { type, id, timestamp: created_at.toISOString(), data } as WebhookEvent,
    receiverId,
    attempts,
  }))
}

/** Rows are locked in one order, so that two workers with the same ones never wait for each other in a circle. */
async function settle(db: Kysely<Tables>, outcomes: readonly WebhookOutcome[]): Promise<WebhookStatus[]> {
  const list = <T>(read: (outcome: WebhookOutcome) => T) => outcomes.map(read)
  const { rows } = await sql<{ event_id: string; receiver_id: number; status: WebhookStatus }>`${sql.raw(PREPARED)}
    with given as (
      select * from unnest(
        ${list(({ eventId }) => eventId)}::text[], ${list(({ receiverId }) => receiverId)}::integer[],
        ${list(({ failure }) => failure ?? null)}::text[], ${list(({ delayMs }) => Math.ceil(delayMs))}::bigint[],
        ${list(({ deadlineMs }) => deadlineMs)}::bigint[]
      ) as given (event_id, receiver_id, failure, delay_ms, deadline_ms)
    ),
    open as (
      select d.event_id, d.receiver_id, given.failure, now() + delay_ms * interval '1 millisecond' as retry_at,
        case
          when given.failure is null then 'delivered'
          when now() + delay_ms * interval '1 millisecond' > queued_at + deadline_ms * interval '1 millisecond' then 'dead'
          else 'pending'
        end as status
      from given join webhook_deliveries as d on d.event_id = given.event_id and d.receiver_id = given.receiver_id
      where d.status = 'pending' or d.status = 'dead' and given.failure is null
      order by d.event_id, d.receiver_id for update of d
    )
    update webhook_deliveries as d
    set status = open.status, failure = open.failure, due_at = open.retry_at,
      settled_at = case when open.status = 'pending' then null else now() end
    from open where d.event_id = open.event_id and d.receiver_id = open.receiver_id
    returning d.event_id, d.receiver_id, d.status`.execute(db)
  return outcomes.map(
    ({ eventId, receiverId }) =>
      rows.find((row) => row.event_id === eventId && row.receiver_id === receiverId)?.status ?? 'delivered',
  )
}
