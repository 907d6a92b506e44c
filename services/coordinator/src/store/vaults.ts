import { hash as computeHash } from 'node:crypto'
import { type Hex, toHex, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError, vaultKeyChanged } from '../errors.ts'
import { type Jobs, POLICY_QUEUE } from './jobs.ts'
import type { Tables } from './tables.ts'
import { toBytes } from './values.ts'

/** The hash (32 bytes, hex) and the canonical JSON. */
export type StoredPolicy = { hash: string; text: string }

/** A wallet whose key is derived from its rules. */
export type Vault = {
  id: string
  userId: string
  address: Hex
  kmsKeyId: string
  createdAt: number
  policy: StoredPolicy
  /** Whether the policy's pinned block was read back. Before that, the address must not be shown. */
  isPinned: boolean
}

function selectVaults(db: Kysely<Tables>) {
  return db
    .selectFrom('wallets as w')
    .innerJoin('policies as r', 'r.hash', 'w.policy_hash')
    .select(['w.id', 'w.user_id', 'w.address', 'w.kms_key_id', 'w.created_at', 'r.hash', 'r.bytes', 'r.pinned_at'])
}

type VaultRow = Awaited<ReturnType<ReturnType<typeof selectVaults>['executeTakeFirstOrThrow']>>

/** Lists shown vaults, oldest first. */
export async function listVaults(db: Kysely<Tables>, userId: string): Promise<Vault[]> {
  const rows = await selectVaults(db)
    .where('w.user_id', '=', userId)
    .where('r.pinned_at', 'is not', null)
    .orderBy('w.created_at')
    .orderBy('w.id')
    .execute()
  return rows.map(toVault)
}

export type FindVaultParameters = { userId: string; policyHash: string }

export async function findVault(
  db: Kysely<Tables>,
  { userId, policyHash }: FindVaultParameters,
): Promise<Vault | undefined> {
  const row = await selectVaults(db)
    .where('w.user_id', '=', userId)
    .where('w.policy_hash', '=', toBytes(policyHash))
    .executeTakeFirst()
  return row && toVault(row)
}

/** Finds a shown vault for a caller without a session. `owner` is SHA-256(iss ‖ 0x00 ‖ sub), as the enclave names its owner. */
export async function findVaultAt(db: Kysely<Tables>, address: Hex): Promise<(Vault & { owner: string }) | undefined> {
  const row = await selectVaults(db)
    .innerJoin('users as u', 'u.id', 'w.user_id')
    .select(['u.issuer', 'u.subject'])
    .where('w.address', '=', toBytes(address))
    .where('r.pinned_at', 'is not', null)
    .executeTakeFirst()
  return row && { ...toVault(row), owner: computeHash('sha256', `${row.issuer}\0${row.subject}`, 'hex') }
}

export type CreateVaultParameters = {
  userId: string
  address: Hex
  kmsKeyId: string
  policy: StoredPolicy
  /** The limit of new vaults per user. Null to restore an existing one. */
  limit: number | null
  now: number
}

/** Calls for one user run one after the other, so that none exceeds the limit. Each call writes a job if the policy isn't pinned. */
export async function createVault(
  { db, jobs }: { db: Kysely<Tables>; jobs: Jobs },
  { userId, address, kmsKeyId, policy, limit, now }: CreateVaultParameters,
): Promise<Vault> {
  return db.transaction().execute(async (transaction) => {
    const [hash, at] = [toBytes(policy.hash), new Date(now)]
    await transaction.selectFrom('users').where('id', '=', userId).select('id').forUpdate().executeTakeFirstOrThrow()
    await sql`insert into policies (hash, bytes, created_at)
      values (${hash}::bytea, ${Buffer.from(policy.text)}::bytea, ${at}::timestamptz) on conflict do nothing`.execute(
      transaction,
    )
    await sql`insert into wallets (user_id, address, kms_key_id, policy_hash, created_at)
      select ${userId}::uuid, ${toBytes(address)}::bytea, ${toBytes(kmsKeyId)}::bytea, ${hash}::bytea, ${at}::timestamptz
      where ${limit}::integer is null
        or (select count(*) from wallets where user_id = ${userId}::uuid and policy_hash is not null) < ${limit}::integer
      on conflict do nothing`.execute(transaction)
    const vault = await findVault(transaction, { userId, policyHash: policy.hash })
    if (vault === undefined) throw new CoordinatorError('too_many_vaults', 'the user has too many vaults')
    if (vault.address !== address || vault.kmsKeyId !== kmsKeyId) {
      throw vaultKeyChanged()
    }
    if (!vault.isPinned) await jobs.insert(transaction, POLICY_QUEUE, [{ data: { hash: policy.hash } }])
    return vault
  })
}

function toVault(row: VaultRow): Vault {
  return {
    id: row.id,
    userId: row.user_id,
    address: toPrefixedHex(row.address),
    kmsKeyId: toHex(row.kms_key_id),
    createdAt: row.created_at.getTime(),
    policy: { hash: toHex(row.hash), text: Buffer.from(row.bytes).toString('utf8') },
    isPinned: row.pinned_at !== null,
  }
}
