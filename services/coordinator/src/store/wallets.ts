import { type AnyWitness, type Hex, hashEntropy, toHex, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import type { Tables } from './tables.ts'
import { toBytes } from './values.ts'

export type Wallet = {
  id: string
  userId: string
  address: Hex
  kmsKeyId: string
  createdAt: number
  /** Written once. The database rejects changes. */
  provenance: { entropyHash: string; entropySig: string; satelliteSource: string }
}

export async function findWallet(db: Kysely<Tables>, userId: string): Promise<Wallet | undefined> {
  const row = await db
    .selectFrom('wallets')
    .innerJoin('users', 'users.id', 'wallets.user_id')
    .where('user_id', '=', userId)
    .where('policy_hash', 'is', null)
    .selectAll('wallets')
    .select('users.kms_key_id as user_key_id')
    .executeTakeFirst()
  if (!row) return undefined
  const { entropy_hash: entropyHash, entropy_sig: entropySig, satellite_source: satelliteSource } = row
  if (!entropyHash || !entropySig || satelliteSource === null) throw new Error('a wallet has no witness')
  const wallet: Wallet = {
    id: row.id,
    userId: row.user_id,
    address: toPrefixedHex(row.address),
    kmsKeyId: toHex(row.kms_key_id),
    createdAt: row.created_at.getTime(),
    provenance: { entropyHash: toHex(entropyHash), entropySig: toHex(entropySig), satelliteSource },
  }
  // The wallet's row can't change, so the user's row was changed by hand.
  if (wallet.kmsKeyId !== toHex(row.user_key_id)) {
    throw new CoordinatorError('key_binding_mismatch', 'wallet and user have different keys')
  }
  return wallet
}

export type CreateWalletParameters = {
  userId: string
  address: Hex
  kmsKeyId: string
  witness: AnyWitness
  now: number
}

/**
 * Of parallel calls one inserts; others violate one of the unique indexes. A separate statement then reads the row, so that it sees what
 * another call committed.
 */
export async function createWallet(db: Kysely<Tables>, parameters: CreateWalletParameters): Promise<Wallet> {
  const { userId, address, kmsKeyId, witness, now } = parameters
  await sql`
    insert into wallets
      (user_id, address, kms_key_id, entropy_hash, entropy_sig, satellite_source, witness, created_at)
    select id, ${toBytes(address)}::bytea, kms_key_id, ${Buffer.from(hashEntropy(toBytes(witness.valueHex)))}::bytea,
      ${toBytes(witness.signatureHex)}::bytea, ${witness.source}::text, ${JSON.stringify(witness)}::jsonb,
      ${new Date(now)}::timestamptz
    from users where id = ${userId}::uuid and kms_key_id = ${toBytes(kmsKeyId)}::bytea
    on conflict do nothing`.execute(db)
  const wallet = await findWallet(db, userId)
  if (wallet?.kmsKeyId !== kmsKeyId.toLowerCase() || wallet.address !== address.toLowerCase()) {
    throw new CoordinatorError('key_binding_mismatch', 'the key of this user has changed')
  }
  return wallet
}
