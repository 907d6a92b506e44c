import type { Hex, OwnerOpening } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { PREPARED } from './openDatabase.ts'
import { isSeenDue, markSeen } from './sessions.ts'
import type { StoredSigning } from './signings.ts'
import type { Tables } from './tables.ts'
import { toDigits, toList } from './values.ts'
import type { StoredPolicy } from './vaults.ts'

/** The signer of a request, with the earlier signature if this digest was signed before. */
export type Signer = {
  userId: string
  grant: string
  /** Whether each request needs a stamp. */
  isBound: boolean
  /** Opens the owner commitment of the user's own wallet. */
  owner: OwnerOpening
  /** The key of the wallet that signs, as is `address`. */
  keyId: string
  address: Hex
  /** Undefined if the user has no wallet yet. */
  walletId: string | undefined
  /** Present if a vault signs. */
  policy?: StoredPolicy
  signed: Pick<StoredSigning, 'signature' | 'slug'> | undefined
}

/** Identifies a signer. Without a digest, no earlier signature is searched; without a wallet, it is the user's own. */
export type SignerQuery = { sidHash: string; digest: Hex | undefined; wallet?: Hex | undefined }

/** A mismatch means that session, user and wallet rows, which never change, have different keys. */
export type FoundSigner = Signer | 'expired' | 'key_binding_mismatch' | 'vault_not_found' | undefined

type SignerRow = {
  position: number
  sid_hash: string
  last_seen_at: number
  expires_at: number
  user_id: string
  grant_token: string
  is_bound: boolean
  owner: OwnerOpening
  key_id: string
  user_key_id: string
  address: string
  wallet_id: string | null
  wallet_key_id: string | null
  wallet_address: string | null
  query_wallet: string | null
  policy_hash: string | null
  policy: string | null
  signature: string | null
  slug: string | null
}

export type FindSignersParameters = {
  queries: readonly SignerQuery[]
  now: number
  idleMs: number
}

/**
 * Finds session, key, wallet and any earlier signature, in one statement for all gathered requests. The wallet is the user's own, or the
 * requested one if its policy is pinned. `offset 0` keeps the planner from reordering the lookups: each is one index access, regardless of
 * statistics.
 */
export async function findSigners(
  db: Kysely<Tables>,
  { queries, now, idleMs }: FindSignersParameters,
): Promise<FoundSigner[]> {
  const list = (read: (one: SignerQuery) => string | null) => toList(queries.map(read), 'text')
  const { rows } = await sql<SignerRow>`${sql.raw(PREPARED)}
    select queries.position::int4, queries.sid_hash, s.user_id, s.grant_token,
      s.client_key is not null as is_bound, s.owner,
      extract(epoch from s.last_seen_at)::float8 * 1000 as last_seen_at,
      extract(epoch from s.expires_at)::float8 * 1000 as expires_at,
      encode(s.key_id, 'hex') as key_id, encode(u.kms_key_id, 'hex') as user_key_id, encode(s.address, 'hex') as address,
      w.id as wallet_id, encode(w.kms_key_id, 'hex') as wallet_key_id, encode(w.address, 'hex') as wallet_address,
      queries.wallet as query_wallet, encode(w.policy_hash, 'hex') as policy_hash, convert_from(r.bytes, 'utf8') as policy,
      encode(p.signature, 'hex') as signature, p.slug
    from unnest(
      ${list(({ sidHash }) => sidHash)}, ${list(({ digest }) => toDigitsOrNull(digest))},
      ${list(({ wallet }) => toDigitsOrNull(wallet))}
    ) with ordinality as queries (sid_hash, digest, wallet, position)
    join lateral (
      select * from sessions where sessions.sid_hash = decode(queries.sid_hash, 'hex') offset 0
    ) as s on true
    join lateral (select kms_key_id from users where id = s.user_id offset 0) as u on true
    left join lateral (
      select id, kms_key_id, address, policy_hash from wallets
      where wallets.user_id = s.user_id and policy_hash is null and queries.wallet is null
      union all
      select id, kms_key_id, address, policy_hash from wallets
      where wallets.user_id = s.user_id and address = decode(queries.wallet, 'hex')
      offset 0
    ) as w on true
    left join lateral (
      select bytes from policies where hash = w.policy_hash and pinned_at is not null offset 0
    ) as r on true
    left join lateral (
      select signing_id, signing_lookups.slug from signing_lookups where request = to_request(w.id, decode(queries.digest, 'hex')) offset 0
    ) as l on true
    left join lateral (
      select l.slug, signings.signature from signings
      where signings.id = l.signing_id and wallet_id = w.id and signings.digest = decode(queries.digest, 'hex') offset 0
    ) as p on true`.execute(db)
  const found = new Array<FoundSigner>(queries.length).fill(undefined)
  const seen = new Set<string>()
  for (const row of rows) {
    const isOver = now >= row.expires_at || now >= row.last_seen_at + idleMs
    found[row.position - 1] = isOver ? 'expired' : toSigner(row)
    if (!isOver && isSeenDue({ lastSeenAt: row.last_seen_at, now })) seen.add(row.sid_hash)
  }
  if (seen.size > 0) await markSeen(db, [...seen], now)
  return found
}

function toSigner(row: SignerRow): FoundSigner {
  // These rows never change, so one was changed by hand.
  if (row.key_id !== row.user_key_id) return 'key_binding_mismatch'
  const { user_id: userId, grant_token: grant, key_id: keyId, wallet_id: walletId } = row
  const signer = { userId, grant, isBound: row.is_bound, owner: row.owner, keyId, address: `0x${row.address}` as const }
  if (walletId === null && row.query_wallet !== null) return 'vault_not_found'
  if (walletId === null) return { ...signer, walletId: undefined, signed: undefined }
  const signed = row.slug === null ? undefined : { signature: toSignature(row.signature), slug: row.slug }
  if (row.policy_hash !== null) return toVaultSigner({ ...signer, walletId, signed }, row)
  if (row.wallet_key_id !== keyId || row.wallet_address !== row.address) return 'key_binding_mismatch'
  return { ...signer, walletId, signed }
}

/** A vault has a separate key. The enclave verifies that it belongs to this user. */
function toVaultSigner(signer: Signer, row: SignerRow): FoundSigner {
  const { policy_hash: hash, policy: text, wallet_key_id: keyId, wallet_address: address } = row
  if (hash === null || text === null || keyId === null) return 'vault_not_found'
  return { ...signer, keyId, address: `0x${address}`, policy: { hash, text } }
}

const toDigitsOrNull = (hex: Hex | undefined) => (hex === undefined ? null : toDigits(hex))
const toSignature = (digits: string | null): Hex | null => (digits === null ? null : `0x${digits}`)
