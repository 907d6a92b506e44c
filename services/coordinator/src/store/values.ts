import { type RawBuilder, sql } from 'kysely'

/** Converts hex, with or without `0x`, for a column of bytes. The database checks the length. */
export function toBytes(hex: string): Buffer {
  return Buffer.from(toDigits(hex), 'hex')
}

/** Lower-case hex digits without `0x`, for arrays that SQL decodes. */
export function toDigits(hex: string): string {
  return (hex.startsWith('0x') ? hex.slice(2) : hex).toLowerCase()
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
