import { type RawBuilder, sql } from 'kysely'

/** Hex, with or without `0x`, for a column of bytes. The lengths are checked by the database. */
export function toBytes(hex: string): Buffer {
  return Buffer.from(toDigits(hex), 'hex')
}

/** Hex digits only, in lower case, for the arrays that SQL decodes itself. */
export function toDigits(hex: string): string {
  return (hex.startsWith('0x') ? hex.slice(2) : hex).toLowerCase()
}

/** The driver answers slices of larger buffers. */
export function toOwnBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}

/**
 * An array for a prepared statement. By way of a subquery the planner does not see how long it is. It would otherwise make a plan of its own
 * for each array that is shorter than it expects, which takes longer than to run it.
 */
export function toList(
  values: readonly (string | number | null)[],
  type: 'bigint' | 'integer' | 'text' | 'uuid',
): RawBuilder<unknown> {
  const array = sql.raw(`${type}[]`)
  return sql`(select ${[...values]}::${array})::${array}`
}
