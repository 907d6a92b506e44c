import { type AttestationPublished, toPrefixedHex } from '@countersign/protocol'
import { type RawBuilder, sql } from 'kysely'

/** Converts hex, with or without `0x`, for a column of bytes. The database checks the length. */
export function toBytes(hex: string): Buffer {
  return Buffer.from(toDigits(hex), 'hex')
}

/** Lower-case hex digits without `0x`, for arrays that SQL decodes. */
export function toDigits(hex: string): string {
  return (hex.startsWith('0x') ? hex.slice(2) : hex).toLowerCase()
}

/** The id of the proof with this slug, or null, which matches no row. */
export const bySlug = (slug: string) => sql<string>`(select signing_id from signing_lookups where slug = ${slug})`

/** An array, which the planner can't turn into a join with all proofs. */
export const idsOf = (slugs: readonly string[]) =>
  sql`array(select signing_id from signing_lookups where slug = any(${[...slugs]}::text[]))`

/** Hides the condition of a partial index from the planner, which would otherwise read all open proofs instead of one. */
export const isOpen = (status: 'pending_pin' | 'pending_onchain') => sql<boolean>`status is not distinct from ${status}`

/** Cuts bytes into pieces of that length without copying. */
export function splitBytes(bytes: Uint8Array, length: number): Uint8Array[] {
  return Array.from({ length: bytes.length / length }, (_, place) =>
    bytes.subarray(length * place, length * (place + 1)),
  )
}

/** The first item of each key. */
export function takeFirsts<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[] {
  const firsts = new Map<string, Item>()
  for (const item of items) if (!firsts.has(keyOf(item))) firsts.set(keyOf(item), item)
  return [...firsts.values()]
}

/** Copies the bytes, because the driver returns slices of larger buffers. */
export function toOwnBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}

/**
 * An array for a prepared statement. The subquery hides its length from the planner. Otherwise PostgreSQL plans the statement again for
 * each array that is shorter than it expects, and the planning takes longer than the query.
 */
export function toList(
  values: readonly (string | number | null)[],
  type: 'bigint' | 'integer' | 'text' | 'uuid',
): RawBuilder<unknown> {
  const array = sql.raw(`${type}[]`)
  return sql`(select ${[...values]}::${array})::${array}`
}

/** The values of an event, or of a receipt in an anchor. */
export function toPublished(row: {
  address: Uint8Array
  tx_hash: Uint8Array
  ipfs_cid: string | null
}): AttestationPublished {
  // The database guarantees a CID for every pinned proof.
  if (row.ipfs_cid === null) throw new Error('a pinned proof has no CID')
  return { wallet: toPrefixedHex(row.address), txHash: toPrefixedHex(row.tx_hash), ipfsCid: row.ipfs_cid }
}
