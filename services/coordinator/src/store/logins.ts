import { toHex } from '@countersign/protocol'
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'
import { toBytes } from './values.ts'

/** A sign-in between redirect and callback. */
export type Login = {
  /** The short id of the state. It names the cookie. */
  id: string
  provider: string
  /** SHA-256 of the state, hex. */
  stateHash: string
  codeVerifier: string
  nonce: string
  /** The browser's key, if the session is to have one. */
  clientKey: string | undefined
  returnTo: string
  expiresAt: number
}

export async function createLogin(db: Kysely<Tables>, login: Login): Promise<void> {
  await db
    .insertInto('logins')
    .values({
      id: login.id,
      provider: login.provider,
      state_hash: toBytes(login.stateHash),
      code_verifier: login.codeVerifier,
      nonce: login.nonce,
      client_key: login.clientKey === undefined ? null : toBytes(login.clientKey),
      return_to: login.returnTo,
      expires_at: new Date(login.expiresAt),
    })
    .execute()
}

/** A wrong state deletes nothing, so a caller that knows only the id can't break another user's sign-in. */
export async function consumeLogin(
  db: Kysely<Tables>,
  { id, stateHash, now }: { id: string; stateHash: string; now: number },
): Promise<Login | undefined> {
  const row = await db
    .deleteFrom('logins')
    .where('id', '=', id)
    .where('state_hash', '=', toBytes(stateHash))
    .where('expires_at', '>', new Date(now))
    .returningAll()
    .executeTakeFirst()
  // Deletes unfinished sign-ins, at the same rate as they are created.
  await db.deleteFrom('logins').where('expires_at', '<=', new Date(now)).execute()
  return (
    row && {
      id: row.id,
      provider: row.provider,
      stateHash: toHex(row.state_hash),
      codeVerifier: row.code_verifier,
      nonce: row.nonce,
      clientKey: row.client_key === null ? undefined : toHex(row.client_key),
      returnTo: row.return_to,
      expiresAt: row.expires_at.getTime(),
    }
  )
}
