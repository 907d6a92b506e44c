import { hashTypedData as hashWithViem } from 'viem'
import { hashTypedData, ServiceError, type TypedData, type TypedDataMember, toPrefixedHex } from '../src/index.ts'
import { createRandom, type Random } from './random.ts'

type Types = Record<string, TypedDataMember[]>

/** Names that a careless reader finds on every object, and names that look like types. */
const STRUCT_NAMES = ['Mail', 'Person', 'A', 'a_1', '_x', 'Z9', 'Bool', 'Uint256', 'String', 'toString', 'constructor']
const MEMBER_NAMES = [
  'from',
  'to',
  'a',
  'b',
  'C1',
  '_',
  'length',
  'valueOf',
  'name',
  'type',
  'uint256',
  'hasOwnProperty',
]
const ARRAYS = ['', '', '', '', '[]', '[1]', '[2]', '[][]', '[2][]', '[][3]', '[1][2]']
const TEXTS = [
  '',
  'a',
  'Hello, Bob!',
  '\0',
  '"\\\n',
  'é',
  'e\u0301',
  '漢字',
  '👍🏽',
  '\ufeff',
  '\uffff',
  'x'.repeat(200),
]
const MAX_STRUCTS = 4

function drawAtom({ pick, below }: Random): string {
  const size = 1 + below(32)
  return pick(['bool', 'address', 'bytes', 'string', `uint${8 * size}`, `int${8 * size}`, `bytes${size}`])
}

/** Numbers at the ends of their range are as likely as all others, in every accepted spelling. */
function drawInteger({ pick, bytes }: Random, kind: string, bits: bigint): string | number {
  const [min, max] = kind === 'uint' ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n]
  const inside = min + (BigInt(toPrefixedHex(bytes(40))) % (max - min + 1n))
  const value = pick([min, max, 0n, 1n, max - 1n, inside, inside, inside])
  const isSafe = value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
  const spelling = pick(['decimal', 'hex', 'number'])
  if (spelling === 'number' && isSafe) return Number(value)
  return spelling === 'hex' && value >= 0n ? `0x${value.toString(16)}` : String(value)
}

function drawValue(random: Random, types: Types, type: string): unknown {
  const { pick, below, bytes } = random
  const hexOf = (length: number) => toPrefixedHex(bytes(length))
  const [, item, length] = /^(.*)\[(\d*)\]$/.exec(type) ?? []
  if (item !== undefined) {
    const count = length === '' ? below(3) : Number(length)
    return Array.from({ length: count }, () => drawValue(random, types, item))
  }
  if (Object.hasOwn(types, type)) return drawStruct(random, types, type)
  if (type === 'bool') return pick([true, false])
  if (type === 'string') return pick(TEXTS)
  if (type === 'bytes') return hexOf(below(70))
  if (type === 'address') return hexOf(20)
  const [, kind = '', size = ''] = /^(bytes|uint|int)(\d+)$/.exec(type) ?? []
  return kind === 'bytes' ? hexOf(Number(size)) : drawInteger(random, kind, BigInt(size))
}

function drawStruct(random: Random, types: Types, name: string) {
  return Object.fromEntries((types[name] ?? []).map((member) => [member.name, drawValue(random, types, member.type)]))
}

/** Structs that refer only to later ones, so none contains itself. The first is the primary type. */
function drawTypes(random: Random): { types: Types; primaryType: string } {
  const { pick, below, shuffle } = random
  const names = shuffle(STRUCT_NAMES).slice(0, 1 + below(MAX_STRUCTS))
  const structs = names.map((name, index): [string, TypedDataMember[]] => {
    const members = shuffle(MEMBER_NAMES).slice(0, below(5))
    const drawType = () => pick([drawAtom(random), drawAtom(random), ...names.slice(index + 1)]) + pick(ARRAYS)
    return [name, members.map((member) => ({ name: member, type: drawType() }))]
  })
  // Shuffled, because hashes don't depend on the order.
  return { types: Object.fromEntries(shuffle(structs)), primaryType: names[0] as string }
}

const DOMAIN: TypedDataMember[] = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
  { name: 'salt', type: 'bytes32' },
]

export function drawTypedData(random: Random): { typedData: TypedData; domainType: TypedDataMember[] } {
  const { types, primaryType } = drawTypes(random)
  const last = random.pick(DOMAIN)
  const domainType = DOMAIN.filter((member) => member === last || random.below(2) === 0)
  const domain = drawStruct(random, { EIP712Domain: domainType }, 'EIP712Domain')
  const all = random.below(2) === 0 ? { EIP712Domain: domainType, ...types } : types
  return { typedData: { domain, types: all, primaryType, message: drawStruct(random, types, primaryType) }, domainType }
}

/** Changes that make valid typed data invalid. */
export const typedDataFaults: readonly ((typedData: TypedData) => unknown)[] = [
  (good) => ({ ...good, message: { ...good.message, extra: 1 } }),
  (good) => ({ ...good, extra: 1 }),
  (good) => ({ ...addMember(good, 'bool', true), message: good.message }),
  (good) => ({ ...good, domain: { ...good.domain, extra: 'x' } }),
  (good) => ({ ...good, domain: {} }),
  (good) => ({ ...good, primaryType: 'EIP712Domain' }),
  (good) => ({ ...good, primaryType: 'Nobody' }),
  (good) => ({ ...good, primaryType: '__proto__' }),
  (good) => ({ ...good, types: { ...good.types, EIP712Domain: [...DOMAIN, { name: 'more', type: 'string' }] } }),
  (good) => ({ ...good, types: { ...good.types, EIP712Domain: [] } }),
  (good) => addMember(good, 'Nobody', {}),
  (good) => addMember(good, `${good.primaryType}[]`, []),
  ...[
    'uint',
    'int',
    'uint7',
    'int264',
    'uint08',
    'bytes0',
    'bytes33',
    'fixed128x18',
    'function',
    'uint8[0]',
    'uint8[-1]',
  ].map((type) => (good: TypedData) => addMember(good, type, type.endsWith(']') ? [] : 1)),
  ...['uint', 'uint256', 'int8', 'bytes', 'bytes4', 'bool', 'address', 'string', 'a b', 'a(b', '1a', ''].map(
    (name) => (good: TypedData) => ({ ...good, types: { ...good.types, [name]: [] } }),
  ),
  ...[
    ['uint8', 256],
    ['uint8', -1],
    ['int8', 128],
    ['int8', -129],
    ['uint256', 2 ** 53],
    ['uint8', 1.5],
    ['uint8', -0],
  ].map(
    ([type, value]) =>
      (good: TypedData) =>
        addMember(good, String(type), value),
  ),
  ...['', '0x', '01', '+1', ' 1', '1n', '1e3', '-0', '-0x1', '0X1', '0b1', `1${'0'.repeat(78)}`].map(
    (value) => (good: TypedData) => addMember(good, 'uint256', value),
  ),
  (good) => addMember(good, 'string', '\ud800'),
  (good) => addMember(good, 'uint8[2]', [1]),
  (good) => addMember(good, 'bool', 'true'),
  (good) => addMember(good, 'bytes4', '0x010203'),
  (good) => addMember(good, 'bytes', '0x1'),
  (good) => addMember(good, 'address', `0x${'11'.repeat(19)}`),
]

function addMember(good: TypedData, type: string, value: unknown): TypedData {
  const members = [...(good.types[good.primaryType] ?? []), { name: 'added', type }]
  return {
    ...good,
    types: { ...good.types, [good.primaryType]: members },
    message: { ...good.message, added: value },
  }
}

/**
 * Compares our hash of random typed data with viem's, then breaks each in one way and expects a rejection. Throws at the first difference.
 */
export function checkRandomTypedData({ runs, seed }: { runs: number; seed: number }): void {
  const random = createRandom(seed)
  for (let run = 0; run < runs; run++) {
    const { typedData, domainType } = drawTypedData(random)
    // Without an explicit EIP712Domain, viem omits a chain ID that is a string.
    const types = { EIP712Domain: domainType, ...typedData.types }
    const expected = hashWithViem({ ...typedData, types } as never)
    const digest = toPrefixedHex(hashTypedData(typedData))
    if (digest !== expected) throw new Error(`run ${run}: different digest: ${JSON.stringify(typedData)}`)
    const spoilt = random.pick(typedDataFaults)(typedData)
    if (!isRefused(spoilt)) throw new Error(`run ${run}: not rejected: ${JSON.stringify(spoilt)}`)
  }
}

function isRefused(typedData: unknown): boolean {
  try {
    hashTypedData(typedData as TypedData)
    return false
  } catch (error) {
    return error instanceof ServiceError && error.code === 'invalid_typed_data'
  }
}
