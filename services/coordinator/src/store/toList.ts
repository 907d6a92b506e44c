import { type RawBuilder, sql } from 'kysely'

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
