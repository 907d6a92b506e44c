import { type Hex, type OwnerOpening, toHex, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import type { Tables } from './tables.ts'
import { toUser, type User } from './users.ts'
import { toBytes } from './values.ts'

/** A session. The database stores only the hash of its secret, so a stolen copy can't sign. */
export type Session = {
  /** SHA-256 of the session secret, in hex. */
  sidHash: string
  userId: string
  grant: string
  /** If set, the enclave signs only requests that this key has stamped. */
  clientKey: string | undefined
  /** Opens the owner commitment of the wallet's address. */
  owner: OwnerOpening
  keyId: string
  address: Hex
  createdAt: number
  lastSeenAt: number
  expiresAt: number
}

/** Limits how often a session in use writes its row. */
const SEEN_INTERVAL_MS = 60_000
/** How long an expired session is stored, so that it fails with `session_expired`. */
const KEEP_EXPIRED_MS = 86_400_000
/** More than a person opens in 12 hours. */
const MAX_LISTED = 100

export async function createSession(db: Kysely<Tables>, session: Session): Promise<void> {
  await db
    .insertInto('sessions')
    .values({
      sid_hash: toBytes(session.sidHash),
      user_id: session.userId,
      grant_token: session.grant,
      client_key: session.clientKey === undefined ? null : toBytes(session.clientKey),
      owner: JSON.stringify(session.owner),
      key_id: toBytes(session.keyId),
      address: toBytes(session.address),
      created_at: new Date(session.createdAt),
      last_seen_at: new Date(session.lastSeenAt),
      expires_at: new Date(session.expiresAt),
    })
    .execute()
  await db
    .deleteFrom('sessions')
    .where('expires_at', '<', new Date(session.createdAt - KEEP_EXPIRED_MS))
    .execute()
}

export async function findSession(
  db: Kysely<Tables>,
  { sidHash, now, idleMs }: { sidHash: string; now: number; idleMs: number },
): Promise<{ session: Session; user: User } | 'expired' | undefined> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .where('sid_hash', '=', toBytes(sidHash))
    .select(['sid_hash', 'grant_token', 'client_key', 'owner', 'key_id', 'address'])
    .select(['sessions.created_at', 'last_seen_at', 'expires_at'])
    .select(['users.id', 'issuer', 'subject', 'email', 'name', 'kms_key_id'])
    .executeTakeFirst()
  if (!row) return undefined
  const lastSeenAt = row.last_seen_at.getTime()
  if (now >= row.expires_at.getTime() || now >= lastSeenAt + idleMs) return 'expired'
  const session: Session = {
    sidHash: toHex(row.sid_hash),
    userId: row.id,
    grant: row.grant_token,
    clientKey: row.client_key === null ? undefined : toHex(row.client_key),
    owner: row.owner,
    keyId: toHex(row.key_id),
    address: toPrefixedHex(row.address),
    createdAt: row.created_at.getTime(),
    lastSeenAt,
    expiresAt: row.expires_at.getTime(),
  }
  const user = toUser(row)
  // One of the two rows was changed by hand.
  if (session.keyId !== user.kmsKeyId) {
    throw new CoordinatorError('key_binding_mismatch', 'session and user have different keys')
  }
  if (!isSeenDue({ lastSeenAt, now })) return { session, user }
  await markSeen(db, [sidHash], now)
  return { session: { ...session, lastSeenAt: now }, user }
}

export function isSeenDue({ lastSeenAt, now }: { lastSeenAt: number; now: number }): boolean {
  return now >= lastSeenAt + SEEN_INTERVAL_MS
}

export async function markSeen(db: Kysely<Tables>, sidHashes: readonly string[], now: number): Promise<void> {
  const due = db
    .selectFrom('sessions')
    .select('sid_hash')
    .where('sid_hash', 'in', sidHashes.map(toBytes))
    // A slow request must not set the time back.
    .where('last_seen_at', '<', new Date(now))
    // Skip rows that another call is updating. Two calls that wait for each other's rows would deadlock, and every caller gathered into one
    // of them would fail.
    .forUpdate()
    .skipLocked()
  await db
    .updateTable('sessions')
    .set({ last_seen_at: new Date(now) })
    .where('sid_hash', '=', sql<Buffer>`any(array(${due}))`)
    .execute()
}

/** A session without its secrets. */
export type ListedSession = Pick<Session, 'sidHash' | 'clientKey' | 'createdAt' | 'lastSeenAt' | 'expiresAt'>

/** A user's open sessions, newest first. */
export async function listSessions(
  db: Kysely<Tables>,
  { userId, now, idleMs }: { userId: string; now: number; idleMs: number },
): Promise<ListedSession[]> {
  const rows = await db
    .selectFrom('sessions')
    .select(['sid_hash', 'client_key', 'created_at', 'last_seen_at', 'expires_at'])
    .where('user_id', '=', userId)
    .where('expires_at', '>', new Date(now))
    .where('last_seen_at', '>', new Date(now - idleMs))
    .orderBy('created_at', 'desc')
    .orderBy('sid_hash')
    .limit(MAX_LISTED)
    .execute()
  return rows.map((row) => ({
    sidHash: toHex(row.sid_hash),
    clientKey: row.client_key === null ? undefined : toHex(row.client_key),
    createdAt: row.created_at.getTime(),
    lastSeenAt: row.last_seen_at.getTime(),
    expiresAt: row.expires_at.getTime(),
  }))
}

/** Deletes all sessions of a user. */
export async function deleteSessions(db: Kysely<Tables>, userId: string): Promise<void> {
  await db.deleteFrom('sessions').where('user_id', '=', userId).execute()
}

export async function deleteSession(db: Kysely<Tables>, sidHash: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('sessions').where('sid_hash', '=', toBytes(sidHash)).executeTakeFirst()
  return numDeletedRows > 0n
}
