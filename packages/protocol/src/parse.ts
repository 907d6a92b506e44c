import { isPlainObject } from './plainObject.ts'
import { type IsKnown, read, type Schema } from './schema.ts'

const isKnown: IsKnown = (value, members) => Object.keys(value).every((name) => Object.hasOwn(members, name))

/**
 * A copy of a value of exactly this shape: other members are refused. `fail` makes the caller's own error. Its details name members of the
 * schema, and nothing of the value: anyone may have written it, and details may go into a log.
 *
 * @example
 * const { sid, grant } = parse(vaultRequest, body, invalidRequest)
 */
export function parse<Value>(schema: Schema<Value>, value: unknown, fail: (details: string) => Error): Value {
  try {
    return read(schema, value, isKnown)
  } catch {
    throw fail(explain(schema, value, ''))
  }
}

/** Whether a value is of exactly this shape. */
export function isOf<Value>(schema: Schema<Value>, value: unknown): value is Value {
  try {
    read(schema, value, isKnown)
    return true
  } catch {
    return false
  }
}

/** Why a value is not of a schema. Only failures pay for the words. */
function explain({ items, members }: Schema, value: unknown, path: string): string {
  const at = path || 'it'
  if (items !== undefined) {
    if (!Array.isArray(value)) return `${at} is not a list`
    const index = value.findIndex((item) => !isOf(items, item))
    if (index >= 0) return explain(items, value[index], `${path}[${index}]`)
  }
  if (members !== undefined) {
    if (!isPlainObject(value)) return `${at} is not an object`
    for (const [name, member] of Object.entries(members)) {
      const inner = path ? `${path}.${name}` : name
      if (isOf(member, value[name])) continue
      return value[name] === undefined ? `${inner} is missing` : explain(member, value[name], inner)
    }
    if (!isKnown(value, members)) return `${at} has an unknown member`
  }
  return `${at} is not valid`
}
