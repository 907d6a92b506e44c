import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes, equalBytes } from './bytes.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, fromPrefixedHex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'
import { assertOffChainContent } from './message.ts'
import { hasExactMembers, isPlainObject } from './plainObject.ts'
import { type Infer, leaf, object, string } from './schema.ts'
import {
  createStructs,
  parseStruct,
  parseStructs,
  type Struct,
  type Structs,
  type TypedDataMember,
  type ValueType,
} from './typedDataTypes.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * EIP-712 typed data as JSON carries it. Integers are decimal strings, hex with `0x`, or numbers within 2^53; `bytes` and addresses
 * are hex with `0x` in either case.
 */
export const typedData = object({
  domain: leaf<Record<string, unknown>>(isPlainObject),
  types: leaf<Record<string, readonly TypedDataMember[]>>(isPlainObject),
  primaryType: string(),
  message: leaf<Record<string, unknown>>(isPlainObject),
})
export type TypedData = Infer<typeof typedData>

/** EIP-712, "Definition of domainSeparator": the possible members of a domain, in order. */
const DOMAIN_MEMBERS = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
  { name: 'salt', type: 'bytes32' },
] as const

const DOMAIN = 'EIP712Domain'
/** 2^256 has 78 digits in decimal. The limits keep BigInt from parsing kilobytes. */
const DECIMAL = /^(?:0|-?[1-9]\d{0,77})$/
const HEX_INTEGER = /^0x[0-9a-fA-F]{1,64}$/

/**
 * The digest to sign for typed data: EIP-712, keccak256(0x1901 ‖ domainSeparator ‖ hashStruct(message)). No RLP list and no EIP-2718 type
 * starts with this byte, so it can't be the digest of a transaction. Rejects everything that is ambiguous or wouldn't be hashed.
 */
export function hashTypedData(given: TypedData): Bytes {
  assertOffChainContent(given, invalid)
  if (!hasExactMembers(given, ['domain', 'types', 'primaryType', 'message'])) {
    throw invalid('not exactly the expected members')
  }
  const { domain, types, primaryType, message } = given
  if (!isPlainObject(types)) throw invalid('types is not an object')
  const { [DOMAIN]: domainType, ...others } = types
  const structs = parseStructs(others, invalid)
  const primary = typeof primaryType === 'string' ? structs.get(primaryType) : undefined
  if (primary === undefined) throw invalid('primaryType is not in types')
  return keccak_256(
    concatBytes(Uint8Array.of(0x19, 0x01), hashDomain(domain, domainType), hashStruct(structs, primary, message)),
  )
}

/** `givenType` is `EIP712Domain`, if the types include it. It must have exactly the domain's members. */
function hashDomain(domain: unknown, givenType: unknown): Bytes {
  if (!isPlainObject(domain)) throw invalid('domain is not an object')
  const members = DOMAIN_MEMBERS.filter(({ name }) => Object.hasOwn(domain, name))
  // EIP-712 requires one or more: a signature without a domain is valid in all domains.
  if (members.length === 0) throw invalid('domain is empty')
  if (givenType !== undefined && !equalBytes(toCanonicalJson(givenType), toCanonicalJson(members))) {
    throw invalid('types: EIP712Domain does not match the domain')
  }
  const struct = parseStruct(DOMAIN, members, invalid)
  return hashStruct(createStructs(new Map([[DOMAIN, struct]]), invalid), struct, domain)
}

function hashStruct(structs: Structs, struct: Struct, value: unknown): Bytes {
  const names = struct.members.map(({ name }) => name)
  if (!hasExactMembers(value, names)) throw invalid('a struct does not have exactly its members')
  const words = struct.members.map(({ name, type }) => encodeValue(structs, type, value[name]))
  return structs.hash(concatBytes(structs.hashType(struct.name), ...words))
}

/** EIP-712, "Definition of encodeData": 32 bytes for each member. */
function encodeValue(structs: Structs, type: ValueType, value: unknown): Bytes {
  switch (type.kind) {
    case 'struct': {
      const struct = structs.get(type.name)
      if (struct === undefined) throw invalid('types: a type is unknown')
      return hashStruct(structs, struct, value)
    }
    case 'array': {
      if (!Array.isArray(value)) throw invalid('an array is not a list')
      if (type.length !== undefined && value.length !== type.length) throw invalid('an array has the wrong length')
      return structs.hash(concatBytes(...value.map((item: unknown) => encodeValue(structs, type.item, item))))
    }
    case 'string':
      if (typeof value !== 'string') throw invalid('a value is not a string')
      return structs.hash(new TextEncoder().encode(value))
    case 'bytes':
      return structs.hash(toBytes(value))
    case 'fixedBytes':
      return toWord(toBytes(value, type.length), 0)
    case 'address':
      return toWord(toBytes(value, 20), 12)
    case 'bool':
      if (typeof value !== 'boolean') throw invalid('a value is not a bool')
      return toWord(Uint8Array.of(value ? 1 : 0), 31)
    default:
      return encodeInteger(type, value)
  }
}

/** Two's complement in 32 bytes: Solidity ABI, "Formal Specification of the Encoding". */
function encodeInteger({ kind, bits }: { kind: 'uint' | 'int'; bits: number }, value: unknown): Bytes {
  const integer = parseInteger(value)
  const [min, end] = kind === 'uint' ? [0n, 1n << BigInt(bits)] : [-(1n << BigInt(bits - 1)), 1n << BigInt(bits - 1)]
  if (integer === undefined || integer < min || integer >= end) throw invalid('an integer is malformed or out of range')
  return fromHex(BigInt.asUintN(256, integer).toString(16).padStart(64, '0'))
}

function parseInteger(value: unknown): bigint | undefined {
  // Above 2^53, the parser has rounded the number. -0 is a second spelling of 0.
  if (typeof value === 'number') return Number.isSafeInteger(value) && !Object.is(value, -0) ? BigInt(value) : undefined
  return typeof value === 'string' && (DECIMAL.test(value) || HEX_INTEGER.test(value)) ? BigInt(value) : undefined
}

function toBytes(value: unknown, length?: number): Bytes {
  if (!isPrefixedHex(value, length)) throw invalid('bytes are malformed or have the wrong length')
  return fromPrefixedHex(value)
}

function toWord(bytes: Uint8Array, offset: number): Bytes {
  const word = new Uint8Array(32)
  word.set(bytes, offset)
  return word
}

/** Details never name members or values: off-chain content must not appear in logs. */
function invalid(details: string) {
  return new ServiceError<ProtocolErrorCode>('invalid_typed_data', 'invalid typed data', { details })
}
