import { concatBytes } from './bytes.ts'
import { toField, toU8, toU32be, toU64be } from './fields.ts'
import * as preimages from './preimages.ts'

/**
 * A field of a preimage: its length in bytes, a big-endian integer, or bytes of any length, only in last place. A list is a constant byte,
 * which distinguishes two preimages with the same tag.
 */
type Field = number | 'u8' | 'u32' | 'u64' | 'rest' | readonly [number]

type Rows = typeof preimages
type Filled = { tag: string; fields: Record<string, Field> }

type Values<Fields> = {
  [Key in keyof Fields as Fields[Key] extends readonly [number] ? never : Key]: Fields[Key] extends 'u8' | 'u32' | 'u64'
    ? number
    : Uint8Array
}

/** The fields of a preimage, without the constants. */
export type Preimage<Name extends keyof Rows> = Rows[Name] extends Filled ? Values<Rows[Name]['fields']> : never

type Tags = { readonly [Name in keyof Rows]: Rows[Name]['tag'] }

export const tags: Tags = /* @__PURE__ */ listTags()

function listTags() {
  return Object.fromEntries(Object.entries(preimages).map(([name, { tag }]) => [name, tag])) as Tags
}

export type Tag = Tags[keyof Tags]

/** The tag in UTF-8 and a zero byte, so that no tag is a prefix of another. */
export function toTagBytes(tag: Tag): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${tag}\0`)
}

/**
 * The bytes to hash or sign: the tag and its fields, in the order of the table. Throws for a field of the wrong length.
 *
 * @example
 * sha512(toPreimage(preimages.snpReport, { publicKey, configHash }))
 */
export function toPreimage<Row extends Filled & { tag: Tag }>(
  { tag, fields }: Row,
  values: Values<Row['fields']>,
): Uint8Array<ArrayBuffer> {
  const parts = Object.entries(fields).map(([key, field]) => encode(key, field, values[key as never]))
  return concatBytes(toTagBytes(tag), ...parts)
}

function encode(name: string, field: Field, value: number | Uint8Array): Uint8Array {
  if (typeof field === 'object') return Uint8Array.from(field)
  if (field === 'u8') return toU8(value as number)
  if (field === 'u32') return toU32be(value as number)
  if (field === 'u64') return toU64be(value as number)
  return field === 'rest' ? (value as Uint8Array) : toField(name, value as Uint8Array, field)
}
