import { type Kysely, sql } from 'kysely'
import type { WebhookEvents, WebhookWarning } from '../ports.ts'
import { toOwnBytes } from './bytes.ts'
import { guard } from './databaseError.ts'
import type { Tables } from './tables.ts'

const DAY = '1 day'
const HOUR = '1 hour'

/** How often each may be told of one cause: a warning once a day, a vault's refusals so often that nobody floods a receiver with them. */
const bounds: {
  [Type in keyof WebhookWarning]: { most: number; span: string; name(data: WebhookWarning[Type]): string }
} = {
  'vault.refused': { most: 60, span: HOUR, name: ({ walletAddress }) => walletAddress },
  'collateral.lapsing': { most: 1, span: DAY, name: ({ fmspc, ca }) => `${fmspc} ${ca}` },
  'publisher.short_of_gas': { most: 1, span: DAY, name: ({ account, chainId }) => `${chainId} ${account}` },
}

/** What is told of by no row of its own, and the keys that sign. */
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
