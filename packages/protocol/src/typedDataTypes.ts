import { keccak_256 } from '@noble/hashes/sha3.js'
import { type Infer, isOf, object, string } from './schema.ts'

/** A member of a struct in `types`. */
export const typedDataMember = object({ name: string(), type: string() })
export type TypedDataMember = Infer<typeof typedDataMember>

/** The parsed type of a value. */
export type ValueType =
  | { kind: 'bool' | 'address' | 'bytes' | 'string' }
  | { kind: 'uint' | 'int'; bits: number }
  | { kind: 'fixedBytes'; length: number }
  | { kind: 'struct'; name: string }
  | { kind: 'array'; item: ValueType; length?: number }

/** A struct whose members have known types. `text` is its part of EIP-712's `encodeType`. */
export type Struct = { name: string; members: readonly { name: string; type: ValueType }[]; text: string }

export type Structs = {
  get(name: string): Struct | undefined
  /** EIP-712 `typeHash`: over the struct and all structs that it refers to, sorted by name. */
  hashType(name: string): Uint8Array
  /** Keccak-256 with a limit on the total input. */
  hash(bytes: Uint8Array): Uint8Array<ArrayBuffer>
}

type Fail = (details: string) => Error

const MAX_DEPTH = 16
/** The block size of Keccak-256, in bytes. */
const BLOCK_BYTES = 136
/**
 * Some tens of milliseconds. Enough for a list of all the numbers that fit into 32 KiB. Ten thousand strings, or hundreds of structs that
 * refer to one long type, would block the signing thread for all users.
 */
const MAX_BLOCKS = 4096
const IDENTIFIER = /^[A-Za-z_]\w*$/
const TYPE = /^([A-Za-z_]\w*)((?:\[(?:[1-9]\d*)?\])*)$/
/** Every name that is, or looks like, a built-in type. As a struct's name it would be ambiguous. */
const RESERVED = /^(?:bool|address|string|bytes\d*|u?int\d*|u?fixed(?:\d+x\d+)?|function|EIP712Domain)$/

/**
 * Parses the structs of EIP-712 typed data. Checks every type, also those that the primary type doesn't reach: each is known, none contains
 * itself, and structs and arrays are nested at most 16 deep.
 */
export function parseStructs(types: Record<string, unknown>, fail: Fail): Structs {
  const structs = new Map<string, Struct>()
  for (const [name, members] of Object.entries(types)) {
    if (!IDENTIFIER.test(name) || RESERVED.test(name)) throw fail('types: a struct may not have this name')
    structs.set(name, parseStruct(name, members, fail))
  }
  const depths = new Map<string, number>()
  for (const name of structs.keys()) measureStruct(name, [])

  /** `open` are the enclosing structs. Together with the limit, it bounds the recursion. */
  function measureStruct(name: string, open: readonly string[]): number {
    const known = depths.get(name)
    if (known !== undefined) return known
    const struct = structs.get(name)
    if (struct === undefined) throw fail('types: a type is unknown')
    if (open.includes(name)) throw fail('types: a struct contains itself')
    if (open.length >= MAX_DEPTH) throw fail(`types: nested deeper than ${MAX_DEPTH}`)
    let depth = 1
    for (const { type } of struct.members) depth = Math.max(depth, 1 + measure(type, [...open, name]))
    if (depth > MAX_DEPTH) throw fail(`types: nested deeper than ${MAX_DEPTH}`)
    depths.set(name, depth)
    return depth
  }

  function measure(type: ValueType, open: readonly string[]): number {
    if (type.kind === 'array') return 1 + measure(type.item, open)
    return type.kind === 'struct' ? measureStruct(type.name, open) : 0
  }

  return createStructs(structs, fail)
}

/** Structs with their hashes, each computed once. */
export function createStructs(structs: ReadonlyMap<string, Struct>, fail: Fail): Structs {
  const hashes = new Map<string, Uint8Array>()
  let blocks = 0

  function hash(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    blocks += Math.floor(bytes.length / BLOCK_BYTES) + 1
    if (blocks > MAX_BLOCKS) throw fail('too much to hash')
    return keccak_256(bytes)
  }

  return {
    get: (name) => structs.get(name),
    hash,
    hashType(name) {
      const known = hashes.get(name)
      if (known !== undefined) return known
      const others = findReferences(structs, name)
      others.delete(name)
      const names = [name, ...[...others].sort()]
      const typeHash = hash(new TextEncoder().encode(names.map((one) => structs.get(one)?.text).join('')))
      hashes.set(name, typeHash)
      return typeHash
    },
  }
}

/** The struct and all structs that it refers to, directly or indirectly. */
function findReferences(structs: ReadonlyMap<string, Struct>, name: string): Set<string> {
  const found = new Set([name])
  // A set can grow during iteration: each name is visited once.
  for (const one of found) {
    for (const { type } of structs.get(one)?.members ?? []) {
      const inner = toInnermost(type)
      if (inner.kind === 'struct') found.add(inner.name)
    }
  }
  return found
}

function toInnermost(type: ValueType): ValueType {
  return type.kind === 'array' ? toInnermost(type.item) : type
}

/** Parses one struct. Its name and the structs that it refers to are not checked. */
export function parseStruct(name: string, members: unknown, fail: Fail): Struct {
  if (!Array.isArray(members)) throw fail('types: a struct is not a list of members')
  const names = new Set<string>()
  const parsed = members.map((member: unknown) => {
    if (!isOf(typedDataMember, member)) throw fail('types: a member does not have exactly a name and a type')
    if (!IDENTIFIER.test(member.name) || names.has(member.name)) throw fail('types: a member may not have this name')
    names.add(member.name)
    return { name: member.name, type: parseType(member.type, fail) }
  })
  const text = members.map((member: TypedDataMember) => `${member.type} ${member.name}`).join(',')
  return { name, members: parsed, text: `${name}(${text})` }
}

function parseType(text: string, fail: Fail): ValueType {
  const [, name, arrays] = TYPE.exec(text) ?? []
  if (name === undefined || arrays === undefined) throw fail('types: a type is unknown')
  let type = parseItemType(name)
  if (type === undefined) throw fail('types: a type is unknown')
  const lengths = arrays.split('[').slice(1)
  if (lengths.length > MAX_DEPTH) throw fail(`types: nested deeper than ${MAX_DEPTH}`)
  // From left to right: `uint8[2][]` is a list of pairs.
  for (const length of lengths) {
    const digits = length.slice(0, -1)
    type = { kind: 'array', item: type, ...(digits === '' ? {} : { length: Number(digits) }) }
  }
  return type
}

/** Rejects `uint` and `int` without a size: Solidity treats them as `uint256` and `int256`, but the type's hash would differ. */
function parseItemType(name: string): ValueType | undefined {
  if (name === 'bool' || name === 'address' || name === 'bytes' || name === 'string') return { kind: name }
  const [, integer, bits] = /^(uint|int)([1-9]\d*)$/.exec(name) ?? []
  if (integer !== undefined) {
    const size = Number(bits)
    return size % 8 === 0 && size <= 256 ? { kind: integer as 'uint' | 'int', bits: size } : undefined
  }
  const length = Number(/^bytes([1-9]\d*)$/.exec(name)?.[1] ?? 0)
  if (length > 0) return length <= 32 ? { kind: 'fixedBytes', length } : undefined
  return RESERVED.test(name) ? undefined : { kind: 'struct', name }
}
