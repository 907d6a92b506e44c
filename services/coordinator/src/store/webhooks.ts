import type { WebhookData, WebhookEvent, WebhookType } from '@countersign/protocol'
import { type Kysely, type Selectable, sql } from 'kysely'
import { bind, guard } from './databaseError.ts'
import { gatherCalls } from './gather.ts'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import { toBytes, toOwnBytes } from './values.ts'

/** The state of a delivery. `dead` ones are not retried until an operator sends them again. */
export type WebhookStatus = Selectable<Tables['webhook_deliveries']>['status']

/** A receiver by the SHA-256 of its URL (hex), and the part of the URL that may be shown. */
export type NamedReceiver = { urlHash: string; origin: string }

/** An event to send to one receiver. `attempts` includes this one. */
export type DueWebhook = { event: WebhookEvent; receiverId: number; attempts: number }

export type WebhookOutcome = {
  eventId: string
  receiverId: number
  /** Undefined if it was delivered. */
  failure: string | undefined
  /** The delay before the next attempt. */
  delayMs: number
  /** How long after queueing it is abandoned. */
  deadlineMs: number
}

/** `undelivered` counts events that never arrived. `isOver`: no older events remain. */
type Forgotten = { undelivered: number; isOver: boolean }

/** Per statement. */
const MAX_FORGOTTEN = 5_000
/** The lock for deleting webhooks. */
const FORGET_LOCK = 0x77_68_6b_02

/** Reads and writes of workers that deliver webhooks. Failures of the database itself throw `database_unavailable`. */
export function createWebhookStore(db: Kysely<Tables>) {
  return {
    ...bind(db, { register, claim, countInactive, forget }),
    /** Records the outcomes. A delivered event stays delivered, even if another worker reports otherwise later. */
    recordOutcome: gatherCalls(guard((outcomes: readonly WebhookOutcome[]) => recordOutcomes(db, outcomes))),
  }
}

export type WebhookStore = ReturnType<typeof createWebhookStore>

/**
 * Makes these the only receivers of new events, and these keys (32 bytes) the signing keys. Returns the receivers' ids in order, and the
 * number of receivers that were active before.
 */
function register(
  db: Kysely<Tables>,
  { receivers, keys, now }: { receivers: readonly NamedReceiver[]; keys: readonly Uint8Array[]; now: number },
): Promise<{ ids: number[]; switchedOff: number }> {
  const hashes = receivers.map(({ urlHash }) => urlHash)
  return db.transaction().execute(async (transaction) => {
    // Two workers that start at once must not mix their lists.
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

/** How many of these receivers are inactive because another worker has registered others. */
async function countInactive(db: Kysely<Tables>, receiverIds: readonly number[]): Promise<number> {
  const { rows } = await sql<{ count: string }>`select count(*) as count from webhook_receivers
    where not is_active and id = any(${receiverIds}::integer[])`.execute(db)
  return Number(rows[0]?.count)
}

/**
 * Deletes a limited number of old delivered events and very old queued ones. A lock lets only one worker do it, so that two don't leave an
 * event to each other. Each row is found by an index, and an event is deleted with its last row.
 */
function forget(
  db: Kysely<Tables>,
  {
    deliveredBefore,
    queuedBefore,
    limit = MAX_FORGOTTEN,
  }: { deliveredBefore: number; queuedBefore: number; limit?: number },
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
      // Skips rows that a worker is updating now. Materialized, because PostgreSQL may run a subquery again, and then delete more than the limit.
      const { rows: deleted } = await sql<{ event_id: string }>`
        with old as materialized (
          select d.event_id, d.receiver_id from webhook_receivers as r join webhook_deliveries as d on d.receiver_id = r.id
          where d.status = ${sql.lit(status)} and d.${sql.ref(column)} < ${new Date(before)}::timestamptz
          limit ${limit}::bigint for update of d skip locked
        )
        delete from webhook_deliveries where (event_id, receiver_id) in (select * from old) returning event_id`.execute(
        transaction,
      )
      lists.push(deleted)
    }
    await sql`delete from webhook_events as e where id = any(${lists.flat().map(({ event_id }) => event_id)}::text[])
      and not exists (select from webhook_deliveries where event_id = e.id)`.execute(transaction)
    const [, pending = [], dead = []] = lists
    return { undelivered: pending.length + dead.length, isOver: lists.every(({ length }) => length < limit) }
  })
}

/** Claims due events, the longest due first. Without an outcome within the lease, they are due again. */
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

/** Locks rows in a fixed order, so that two workers never deadlock. */
async function recordOutcomes(db: Kysely<Tables>, outcomes: readonly WebhookOutcome[]): Promise<WebhookStatus[]> {
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

/** Webhooks about things without a row, with their data. */
export type WebhookWarning = Pick<WebhookData, 'vault.refused' | 'collateral.lapsing' | 'publisher.short_of_gas'>

/** Writes events for webhooks. Without receivers it writes nothing. */
export type WebhookEvents = {
  /** Limited per cause; further events are dropped. */
  write<Type extends keyof WebhookWarning>(type: Type, data: WebhookWarning[Type], now: number): Promise<void>
  /** The public signing keys, 32 bytes each. Empty without webhooks. */
  findKeys(): Promise<Uint8Array[]>
}

const DAY = '1 day'
const HOUR = '1 hour'

/** The limit per cause: one warning a day, and few enough refusals of a vault that no one can flood a receiver. */
const bounds: {
  [Type in keyof WebhookWarning]: { most: number; span: string; name(data: WebhookWarning[Type]): string }
} = {
  'vault.refused': { most: 60, span: HOUR, name: ({ walletAddress }) => walletAddress },
  'collateral.lapsing': { most: 1, span: DAY, name: ({ fmspc, ca }) => `${fmspc} ${ca}` },
  'publisher.short_of_gas': { most: 1, span: DAY, name: ({ account, chainId }) => `${chainId} ${account}` },
}

/** Writes events about things without a row, and reads the signing keys. */
export function createWebhookEvents(db: Kysely<Tables>): WebhookEvents {
  return {
    write: guard(async (type, data, now) => {
      const { most, span, name } = bounds[type]
      await sql`select write_webhook(${type}::text, ${JSON.stringify(data)}::jsonb, ${new Date(now)}::timestamptz,
        ${`${type} ${name(data)}`}::text, ${most}::integer, ${span}::interval)`.execute(db)
    }),
    findKeys: guard(async () => {
      const rows = await db
        .selectFrom('webhook_keys')
        .where('place', 'is not', null)
        .select('key')
        .orderBy('place')
        .execute()
      return rows.map(({ key }) => toOwnBytes(key))
    }),
  }
}

/** A webhook to one receiver, as its operator sees it. */
export type InspectedWebhook = {
  id: string
  type: WebhookType
  /** The receiver's origin. The rest of the URL is only in the settings. */
  receiver: string
  /** False if the settings no longer name that receiver. */
  isActive: boolean
  status: WebhookStatus
  attempts: number
  /** The code of the last failure. */
  failure: string | null
  createdAt: number
  /** The next attempt of a pending one. */
  dueAt: number | null
}

/** Lists webhooks of one status, oldest first. */
export async function listWebhooks(
  db: Kysely<Tables>,
  { status, limit }: { status: WebhookStatus; limit: number },
): Promise<InspectedWebhook[]> {
  const rows = await db
    .selectFrom('webhook_deliveries as d')
    .innerJoin('webhook_events as e', 'e.id', 'd.event_id')
    .innerJoin('webhook_receivers as r', 'r.id', 'd.receiver_id')
    .where('d.status', '=', status)
    .select(['e.id', 'e.type', 'e.created_at', 'r.origin', 'r.is_active'])
    .select(['d.status', 'd.attempts', 'd.failure', 'd.due_at'])
    .orderBy('e.created_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    receiver: row.origin,
    isActive: row.is_active,
    status: row.status,
    attempts: row.attempts,
    failure: row.failure,
    createdAt: row.created_at.getTime(),
    dueAt: row.status === 'pending' ? row.due_at.getTime() : null,
  }))
}

/**
 * Sends dead webhooks again: those of one event, or all without an id. Returns their number. Their deadline starts now. Webhooks to inactive
 * receivers stay dead.
 */
export async function retryWebhooks(db: Kysely<Tables>, { id }: { id: string | undefined }): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_deliveries')
    .set({ status: 'pending', attempts: 0, queued_at: sql`now()`, due_at: sql`now()`, settled_at: null })
    .where('status', '=', 'dead')
    .where('receiver_id', 'in', db.selectFrom('webhook_receivers').where('is_active', '=', true).select('id'))
    .$if(id !== undefined, (update) => update.where('event_id', '=', id ?? ''))
    .executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

export type WebhookCount = { receiver: string; pending: number; dead: number; oldestAt: number | undefined }

/** The most to count. A receiver that is down for days has millions, and the age of the oldest says more. */
const MAX_COUNTED = 10_000

/** Counts pending webhooks per active receiver with the age of the oldest, and dead ones, from the indexes of these two. */
export async function countWebhooks(db: Kysely<Tables>): Promise<WebhookCount[]> {
  const { rows } = await sql<{ origin: string; pending: string; dead: string; oldest_at: Date | null }>`
    select r.origin, sum(p.count) as pending, sum(d.count) as dead, min(o.oldest_at) as oldest_at
    from webhook_receivers as r
    cross join lateral (
      select min(queued_at) as oldest_at from webhook_deliveries where receiver_id = r.id and status = 'pending'
    ) as o
    cross join lateral (
      select count(*) as count from (
        select from webhook_deliveries where receiver_id = r.id and status = 'pending' limit ${MAX_COUNTED}::bigint
      ) as counted
    ) as p
    cross join lateral (
      select count(*) as count from (
        select from webhook_deliveries where receiver_id = r.id and status = 'dead' limit ${MAX_COUNTED}::bigint
      ) as counted
    ) as d
    where r.is_active group by r.origin`.execute(db)
  return rows.map(({ origin, pending, dead, oldest_at }) => ({
    receiver: origin,
    pending: Number(pending),
    dead: Number(dead),
    oldestAt: oldest_at?.getTime(),
  }))
}
