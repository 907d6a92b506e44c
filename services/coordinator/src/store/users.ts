import { toHex } from '@countersign/protocol'
import { type Kysely, type Selectable, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import type { Tables } from './tables.ts'
import { toBytes } from './values.ts'

export type User = { id: string; issuer: string; subject: string; email: string; name: string | null; kmsKeyId: string }

/** One statement. If the key differs, it updates nothing and returns no row. */
export async function upsertUser(db: Kysely<Tables>, user: Omit<User, 'id'> & { now: number }): Promise<User> {
  const now = new Date(user.now)
  const row = await db
    .insertInto('users')
    .values({
      issuer: user.issuer,
      subject: user.subject,
      email: user.email,
      name: user.name,
      kms_key_id: toBytes(user.kmsKeyId),
      created_at: now,
      last_login_at: now,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['issuer', 'subject'])
        .doUpdateSet({ email: user.email, name: user.name, last_login_at: now })
        .where('users.kms_key_id', '=', sql<Uint8Array>`excluded.kms_key_id`),
    )
    .returningAll()
    .executeTakeFirst()
  if (!row) throw new CoordinatorError('key_binding_mismatch', 'the key of this user has changed')
  return toUser(row)
}

export function toUser(row: Omit<Selectable<Tables['users']>, 'created_at' | 'last_login_at'>): User {
  return {
    id: row.id,
    issuer: row.issuer,
    subject: row.subject,
    email: row.email,
    name: row.name,
    kmsKeyId: toHex(row.kms_key_id),
  }
}
