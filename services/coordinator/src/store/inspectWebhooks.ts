import type { WebhookType } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'
import type { WebhookStatus } from './types.ts'

/** A webhook on its way to one receiver, as its operator sees it. */
export type InspectedWebhook = {
  id: string
  type: WebhookType
  /** Origin of the receiver; the rest of its URL is only in the settings. */
  receiver: string
  /** False where the settings name that receiver no more. */
  isActive: boolean
  status: WebhookStatus
  attempts: number
  /** Code of the last thing that went wrong. */
  failure: string | null
  createdAt: number
  /** Of a pending one: when it is tried next. */
  dueAt: number | null
}

/** Webhooks of one status, the oldest first. */
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
 * Sends dead ones again, of one event or (without an id) all of them; returns how many. Their deadline counts from now. To a receiver
 * that the settings name no more nothing is sent, so its own stay dead.
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

/** Above it they are not counted one by one: a receiver that is gone for days has millions, and the age of the oldest says more. */
const MAX_COUNTED = 10_000

/** How many wait at each receiver of the settings and since when the oldest does, and how many were given up; from the indexes of those two. */
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
