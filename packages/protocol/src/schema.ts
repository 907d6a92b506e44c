import { isNatural } from './fields.ts'
import type { Hex } from './hex.ts'
import { isPlainObject } from './plainObject.ts'

/*
 * The shapes of messages, as plain data. Each message is declared once: its type is `Infer<typeof schema>`, its parser is `parse` or `read`,
 * and the coordinator generates its API document from it.
 */

declare const VALUE: unique symbol
declare const OPTIONAL: unique symbol

/** A schema of values. */
export type Schema<Value = unknown> = {
  readonly [VALUE]?: Value
  /** Also accepted: null, or undefined for an optional member. */
  or?: readonly unknown[]
  /** The first match applies. */
  options?: readonly Schema[]
  /** The schema of a list's items. */
  items?: Schema
  members?: Members
  /** The pattern of a string. */
  pattern?: RegExp
  /** The allowed values. */
  values?: readonly unknown[]
  /** An extra check, for values that match the rest of the schema. */
  is?: (value: never) => unknown
}

/** The type of the values that a schema describes. */
export type Infer<S> = S extends { readonly [VALUE]?: infer Value } ? Value : never

type Members = { readonly [name: string]: Schema }
export type Optional<Value> = Schema<Value> & { readonly [OPTIONAL]: true }
type Flat<Type> = { [Name in keyof Type]: Type[Name] }
type InferMembers<M> = Flat<
  { -readonly [Name in keyof M as M[Name] extends Optional<unknown> ? never : Name]: Infer<M[Name]> } & {
    -readonly [Name in keyof M as M[Name] extends Optional<unknown> ? Name : never]?: Infer<M[Name]> | undefined
  }
>

// @__NO_SIDE_EFFECTS__
export function string(pattern = /^/): Schema<string> {
  return { pattern }
}

/** A string that is not empty. */
export const text = string(/./)

/** Lower-case hex of this many bytes. */
// @__NO_SIDE_EFFECTS__
export function hex(bytes: number): Schema<string> {
  return string(RegExp(`^[0-9a-f]{${2 * bytes}}$`))
}

/** Lower-case hex with `0x`: the form of Ethereum's values in responses. */
// @__NO_SIDE_EFFECTS__
export function ethereum(bytes: number): Schema<Hex> {
  return string(RegExp(`^0x[0-9a-f]{${2 * bytes}}$`)) as Schema<Hex>
}

/** `0x`-prefixed hex in either case, as callers write it. */
// @__NO_SIDE_EFFECTS__
export function anyCase(bytes: number): Schema<Hex> {
  return string(RegExp(`^0x[0-9a-fA-F]{${2 * bytes}}$`)) as Schema<Hex>
}

/** `0x`-prefixed hex of any length, in either case. */
export const data = string(/^0x(?:[0-9a-fA-F]{2})*$/) as Schema<Hex>

/** One byte or more in lower-case hex, up to `most`. */
// @__NO_SIDE_EFFECTS__
export function hexUpTo(bytes: number): Schema<string> {
  return checked(string(/^(?:[0-9a-f]{2})+$/), (text) => text.length <= 2 * bytes)
}

/** In decimal. */
export const wei = string(/^(?:0|[1-9][0-9]{0,77})$/)

/** ISO 8601 in UTC with milliseconds. */
export const time = checked(string(/^[\d:.T-]{23}Z$/), Date.parse)

export const boolean: Schema<boolean> = literal(true, false)

/** From 0. */
export const natural: Schema<number> = { is: isNatural }

/** From 1. */
export const positive = checked(natural, (value) => value > 0)

/** One of these values. */
// @__NO_SIDE_EFFECTS__
export function literal<const Value extends string | number | boolean>(...values: readonly Value[]): Schema<Value> {
  return { values }
}

/** A value that only a function can check. */
// @__NO_SIDE_EFFECTS__
export function leaf<Value>(is: (value: unknown) => unknown): Schema<Value> {
  return { is }
}

// @__NO_SIDE_EFFECTS__
export function list<Item>(items: Schema<Item>): Schema<readonly Item[]> {
  return { items }
}

/** A schema whose members other schemas can reuse. */
export type ObjectSchema<M extends Members = Members> = Schema<InferMembers<M>> & { members: M }

// @__NO_SIDE_EFFECTS__
export function object<const M extends Members>(members: M): ObjectSchema<M> {
  return { members }
}

/** An optional member. */
// @__NO_SIDE_EFFECTS__
export function optional<Value>(of: Schema<Value>): Optional<Value> {
  return { ...of, or: [undefined, ...(of.or ?? [])] } as unknown as Optional<Value>
}

/** A member that must be missing: it distinguishes the forms of an `either`. */
export const absent = optional(literal<never>())

// @__NO_SIDE_EFFECTS__
export function nullable<Value>(of: Schema<Value>): Schema<Value | null> {
  return { ...of, or: [null] }
}

// @__NO_SIDE_EFFECTS__
export function either<const Options extends readonly Schema[]>(...options: Options): Schema<Infer<Options[number]>> {
  return { options }
}

/** Adds a check that a pattern can't express. */
// @__NO_SIDE_EFFECTS__
export function checked<S extends Schema>({ is: isBefore, ...of }: S, is: (value: Infer<S>) => unknown): S {
  return { ...of, is: isBefore ? (value: never) => isBefore(value) && is(value) : is } as S
}

type IsKnown = (value: object, members: Members) => boolean

/**
 * A copy of the value with the known members. Throws for another shape. Unknown members are dropped, because the HTTP interface may grow,
 * unless `isKnown` rejects them.
 */
export function read<Value>(schema: Schema<Value>, value: unknown, isKnown?: IsKnown): Value
export function read(schema: Schema, value: unknown, isKnown: IsKnown = Boolean): unknown {
  const { or, options, items, members, pattern, values, is } = schema
  if (or?.includes(value)) return value
  for (const option of options ?? []) {
    try {
      return read(option, value, isKnown)
    } catch {}
  }
  let isGood = !options
  let result = value
  if (values) isGood = values.includes(value)
  if (pattern) isGood = typeof value === 'string' && pattern.test(value)
  if (items) {
    isGood = Array.isArray(value)
    result = isGood && (value as unknown[]).map((item) => read(items, item, isKnown))
  }
  if (members) {
    const copy: Record<string, unknown> = {}
    isGood = isPlainObject(value) && isKnown(value, members)
    for (const name in members) {
      const member = read(members[name] as Schema, (value as typeof copy)[name], isKnown)
      if (member !== undefined) copy[name] = member
    }
    result = copy
  }
  if (isGood && (!is || is(result as never))) return result
  throw new TypeError()
}

const hasNoOthers: IsKnown = (value, members) => {
  for (const name in value) if (!Object.hasOwn(members, name)) return false
  return true
}

/**
 * A copy of a value of exactly this shape. Rejects unknown members. `fail` creates the error to throw. Its details name only members of the
 * schema and repeat no values: an untrusted caller may have written them, and details may go into a log.
 *
 * @example
 * const { sid, grant } = parse(vaultRequest, body, invalidRequest)
 */
export function parse<Value>(schema: Schema<Value>, value: unknown, fail: (details: string) => Error): Value {
  try {
    return read(schema, value, hasNoOthers)
  } catch {
    throw fail(explain(schema, value, ''))
  }
}

/** Whether a value is of exactly this shape. */
export function isOf<Value>(schema: Schema<Value>, value: unknown): value is Value {
  try {
    read(schema, value, hasNoOthers)
    return true
  } catch {
    return false
  }
}

/** Explains why a value doesn't match a schema. A separate pass, so that valid values don't pay for it. */
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
    if (!hasNoOthers(value, members)) return `${at} has an unknown member`
  }
  return `${at} is not valid`
}
