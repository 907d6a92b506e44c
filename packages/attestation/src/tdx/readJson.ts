import { fromHex, isPlainObject, parseJson } from '@countersign/protocol/core'

/** Typed access to the members of a JSON object that a vendor signed. Throws errors from `fail`. */
export type ObjectReader = {
  has(name: string): boolean
  string(name: string): string
  integer(name: string, max: number): number
  /** Hex of exactly `length` bytes, in upper or lower case: Intel writes both. */
  hex(name: string, length: number): Uint8Array<ArrayBuffer>
  /** `YYYY-MM-DDThh:mm:ssZ`, in milliseconds. */
  time(name: string): number
  object(name: string): ObjectReader
  /** A non-empty array of objects. */
  objects(name: string): ObjectReader[]
  strings(name: string): string[]
}

export function readJson(text: string, fail: (details: string) => Error): ObjectReader {
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    throw fail('not JSON')
  }
  return createObjectReader(value, fail)
}

function createObjectReader(value: unknown, fail: (details: string) => Error): ObjectReader {
  if (!isPlainObject(value)) throw fail('not an object')
  const members = new Map<string, unknown>(Object.entries(value))

  function text(name: string): string {
    const member = members.get(name)
    if (typeof member !== 'string') throw fail(`${name} is not a string`)
    return member
  }

  function array(name: string): unknown[] {
    const member = members.get(name)
    if (!Array.isArray(member)) throw fail(`${name} is not an array`)
    return member
  }

  return {
    has: (name) => members.has(name),
    string: text,
    integer(name, max) {
      const member = members.get(name)
      if (typeof member !== 'number' || !Number.isInteger(member) || member < 0 || member > max) {
        throw fail(`${name} is not an integer from 0 to ${max}`)
      }
      return member
    },
    hex(name, length) {
      const member = text(name)
      if (member.length !== 2 * length || !/^[0-9a-fA-F]*$/.test(member))
        throw fail(`${name} is not ${length} bytes of hex`)
      return fromHex(member.toLowerCase())
    },
    time(name) {
      const member = text(name)
      const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(member) ? Date.parse(member) : Number.NaN
      if (Number.isNaN(time)) throw fail(`${name} is not a time`)
      return time
    },
    object: (name) => createObjectReader(members.get(name), (details) => fail(`${name}: ${details}`)),
    objects(name) {
      const items = array(name)
      if (items.length === 0) throw fail(`${name} is empty`)
      return items.map((item, index) => createObjectReader(item, (details) => fail(`${name}[${index}]: ${details}`)))
    },
    strings: (name) =>
      array(name).map((item) => {
        if (typeof item !== 'string') throw fail(`${name} has an entry that is not a string`)
        return item
      }),
  }
}
