import { type Hex, hashTypedData as hashWithViem } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { checkRandomTypedData } from '../fuzz/randomTypedData.ts'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import { MAX_OFF_CHAIN_BYTES } from './message.ts'
import { hashTypedData, type TypedData } from './typedData.ts'

/** The example of EIP-712, with the digest and signature of its `Example.js`. */
const mail: TypedData = {
  types: {
    EIP712Domain: [
      { name: 'name', type: 'string' },
      { name: 'version', type: 'string' },
      { name: 'chainId', type: 'uint256' },
      { name: 'verifyingContract', type: 'address' },
    ],
    Person: [
      { name: 'name', type: 'string' },
      { name: 'wallet', type: 'address' },
    ],
    Mail: [
      { name: 'from', type: 'Person' },
      { name: 'to', type: 'Person' },
      { name: 'contents', type: 'string' },
    ],
  },
  primaryType: 'Mail',
  domain: {
    name: 'Ether Mail',
    version: '1',
    chainId: 1,
    verifyingContract: '0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC',
  },
  message: {
    from: { name: 'Cow', wallet: '0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826' },
    to: { name: 'Bob', wallet: '0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB' },
    contents: 'Hello, Bob!',
  },
}

const one = (type: string, value: unknown): TypedData => ({
  types: { One: [{ name: 'value', type }] },
  primaryType: 'One',
  domain: { name: 'x' },
  message: { value },
})
const digestOf = (typedData: unknown) => `0x${toHex(hashTypedData(typedData as TypedData))}`
const refused = withCode('invalid_typed_data')

describe('EIP-712', () => {
  test('matches the example of the EIP: digest and signature', async () => {
    expect(digestOf(mail)).toBe('0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2')
    // keccak256("cow")
    const cow = privateKeyToAccount('0xc85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4')
    expect(await cow.sign({ hash: digestOf(mail) as Hex })).toBe(
      '0x4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b915621c',
    )
  })

  test('EIP712Domain is optional', () => {
    const { EIP712Domain: _, ...types } = mail.types
    expect(digestOf({ ...mail, types })).toBe(digestOf(mail))
  })

  // `npm run fuzz:typed-data` runs 20,000.
  test('hashes 400 random sets of types and values like viem, and rejects each after one fault', () => {
    expect(() => checkRandomTypedData({ runs: 400, seed: 1 })).not.toThrow()
  })

  test('an unused type does not change the hash, and neither does the spelling of an integer', () => {
    expect(digestOf({ ...mail, types: { ...mail.types, Unused: [] } })).toBe(digestOf(mail))
    for (const value of ['255', 255, '0xff', '0x00FF'])
      expect(digestOf(one('uint256', value))).toBe(digestOf(one('uint256', 255)))
    expect(digestOf(one('int16', '-1'))).toBe(hashWithViem(one('int16', -1) as never))
  })
})

/** `S1` contains `S2`, and so on up to `depth`; the last contains a bool. */
function nest(depth: number, brackets = ''): TypedData {
  const types: TypedData['types'] = {}
  let message: Record<string, unknown> = { value: true }
  for (let level = depth; level >= 1; level--) {
    const isLast = level === depth
    types[`S${level}`] = [{ name: 'value', type: isLast ? 'bool' : `S${level + 1}${level === 1 ? brackets : ''}` }]
    if (!isLast) message = { value: level === 1 && brackets !== '' ? [] : message }
  }
  return { types, primaryType: 'S1', domain: { name: 'x' }, message }
}

describe('the depth of types', () => {
  test('hashes 16 structs, and rejects 17', () => {
    expect(digestOf(nest(16))).toBe(hashWithViem(nest(16) as never))
    expect(() => hashTypedData(nest(17))).toThrow(refused)
  })

  test('counts arrays, including empty ones', () => {
    expect(digestOf(nest(15, '[]'))).toBe(hashWithViem(nest(15, '[]') as never))
    expect(() => hashTypedData(nest(16, '[]'))).toThrow(refused)
    expect(digestOf(one(`bool${'[]'.repeat(15)}`, []))).toBe(hashWithViem(one(`bool${'[]'.repeat(15)}`, []) as never))
    expect(() => hashTypedData(one(`bool${'[]'.repeat(16)}`, []))).toThrow(refused)
    expect(() => hashTypedData(one(`bool${'[]'.repeat(5_000)}`, []))).toThrow(refused)
  })

  test('rejects a chain of a thousand structs, from either end', () => {
    const { types } = nest(1_000 / 2)
    const message = { value: true }
    expect(() => hashTypedData({ types, primaryType: 'S500', domain: { name: 'x' }, message })).toThrow(refused)
    const reversed = Object.fromEntries(Object.entries(types).reverse())
    expect(() => hashTypedData({ types: reversed, primaryType: 'S500', domain: { name: 'x' }, message })).toThrow(
      refused,
    )
  })

  test.each([
    ['itself', { One: [{ name: 'value', type: 'One' }] }],
    ['a list of itself', { One: [{ name: 'value', type: 'One[]' }] }],
    ['another that contains it', { One: [{ name: 'value', type: 'Two[2]' }], Two: [{ name: 'value', type: 'One' }] }],
    [
      'an unused struct, and two that contain each other',
      { One: [], Two: [{ name: 'value', type: 'Three' }], Three: [{ name: 'value', type: 'Two[]' }] },
    ],
  ])('a struct may not contain %s', (_, types) => {
    const message = types.One.length === 0 ? {} : { value: [] }
    expect(() => hashTypedData({ types, primaryType: 'One', domain: { name: 'x' }, message })).toThrow(refused)
  })
})

describe('the domain', () => {
  test.each<[string, unknown, unknown?]>([
    ['nothing', undefined],
    ['null', null],
    ['a list', []],
    ['empty', {}],
    ['with a member of another name', { name: 'x', chain: 1 }],
    ['with an invalid chain id', { chainId: '1.5' }],
    ['with a chain id above 2^53 as a number', { chainId: 2 ** 53 }],
    ['with a contract that is not an address', { verifyingContract: '0x00' }],
    ['with a salt of 31 bytes', { salt: `0x${'00'.repeat(31)}` }],
    ['with a name that is a number', { name: 1 }],
    [
      'of another order',
      { name: 'x', version: '1' },
      [
        ['version', 'string'],
        ['name', 'string'],
      ],
    ],
    ['with one member too few', { name: 'x', version: '1' }, [['name', 'string']]],
    [
      'with one member too many',
      { name: 'x' },
      [
        ['name', 'string'],
        ['version', 'string'],
      ],
    ],
    ['of another type', { chainId: 1 }, [['chainId', 'uint64']]],
    ['without members', { name: 'x' }, []],
    ['whose type is not a list', { name: 'x' }, 'no list'],
  ])('%s', (_, domain, domainType) => {
    const given = Array.isArray(domainType) ? domainType.map(([name, type]) => ({ name, type })) : domainType
    const types = { One: [], ...(domainType === undefined ? {} : { EIP712Domain: given }) }
    expect(() => hashTypedData({ types, primaryType: 'One', domain, message: {} } as never)).toThrow(refused)
  })

  test("can't be the primary type or part of it", () => {
    expect(() => hashTypedData({ ...mail, primaryType: 'EIP712Domain', message: mail.domain })).toThrow(refused)
    const types = { ...mail.types, Mail: [{ name: 'inner', type: 'EIP712Domain' }] }
    expect(() => hashTypedData({ ...mail, types, message: { inner: mail.domain } })).toThrow(refused)
  })
})

describe('members and values', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a string', JSON.stringify(mail)],
    ['one member too few', { types: mail.types, primaryType: 'Mail', domain: mail.domain }],
    ['one member too many', { ...mail, digest: `0x${'11'.repeat(32)}` }],
    ['types that are a list', { ...mail, types: [] }],
    ['a struct that is not a list', { ...mail, types: { ...mail.types, Mail: {} } }],
    ['a member without a type', { ...one('bool', true), types: { One: [{ name: 'value' }] } }],
    [
      'a member of more than name and type',
      { ...one('bool', true), types: { One: [{ name: 'value', type: 'bool', more: 1 }] } },
    ],
    [
      'two members of one name',
      {
        ...one('bool', true),
        types: {
          One: [
            { name: 'value', type: 'bool' },
            { name: 'value', type: 'bool' },
          ],
        },
      },
    ],
    [
      'a member whose name ends the type',
      { ...one('bool', true), types: { One: [{ name: 'value)Two(bool b', type: 'bool' }] } },
    ],
    ['a type with a space', one('bool ', true)],
    ['a type that is read as two members', one('bool a,bool', true)],
    ['a message that is a list', { ...mail, message: [] }],
    ['a message that is null', { ...mail, message: null }],
    ['a member that is missing', { ...mail, message: { from: mail.message.from, to: mail.message.to } }],
    ['a member that is null', { ...mail, message: { ...mail.message, to: null } }],
    ['a member too many', { ...mail, message: { ...mail.message, cc: mail.message.to } }],
    [
      'a member too many in a struct inside',
      { ...mail, message: { ...mail.message, to: { name: '', wallet: `0x${'11'.repeat(20)}`, more: 1 } } },
    ],
    ['a list that is an object', one('bool[]', { 0: true, length: 1 })],
    ['a list that is too short', one('bool[2]', [true])],
    ['a list that is too long', one('bool[2]', [true, true, true])],
    ['a bool that is a number', one('bool', 1)],
    ['a string that is a number', one('string', 1)],
    ['half a character', one('string', '\udc00')],
    ['bytes without 0x', one('bytes', '00')],
    ['bytes of half a byte', one('bytes', '0x0')],
    ['bytes that are too long', one('bytes1', '0x0000')],
    ['an address as a name', one('address', 'alice.eth')],
    ['an integer as a list', one('uint8', [1])],
    ['an integer of two signs', one('int8', '--1')],
    ['an integer in white space', one('uint8', ' 1 ')],
    ['NaN', one('uint8', Number.NaN)],
    ['a fraction', one('uint8', 0.5)],
    ['a number above 2^53', one('uint256', 2 ** 53)],
    ['a bigint, which JSON does not have', one('uint256', 1n)],
    ['256 in a byte', one('uint8', '256')],
    ['2^256', one('uint256', String(2n ** 256n))],
    ['128 in a signed byte', one('int8', '0x80')],
    [
      '__proto__',
      JSON.parse('{"types":{"One":[]},"primaryType":"One","domain":{"name":"x"},"message":{"__proto__":{}}}'),
    ],
    [
      'a struct named __proto__',
      JSON.parse('{"types":{"__proto__":[]},"primaryType":"__proto__","domain":{"name":"x"},"message":{}}'),
    ],
    ['a primary type that every object has', { ...one('bool', true), primaryType: 'toString' }],
  ])('refused: %s', (_, typedData) => {
    expect(() => hashTypedData(typedData as TypedData)).toThrow(refused)
  })

  test('does not repeat the content in the error', () => {
    const secret = 'transfer'
    try {
      hashTypedData({ ...one(secret, secret), message: { [secret]: secret } })
      expect.unreachable()
    } catch (error) {
      expect(JSON.stringify([String(error), error, (error as Error).stack, (error as Error).cause])).not.toContain(
        secret,
      )
    }
  })
})

describe('the size', () => {
  const sized = (bytes: number, unit: string) => {
    const empty = new TextEncoder().encode(JSON.stringify(one('string', ''))).length
    return one('string', unit.repeat((bytes - empty) / new TextEncoder().encode(unit).length))
  }

  test('hashes 32 KiB in UTF-8, and rejects one more byte, even with fewer characters', () => {
    expect(digestOf(sized(MAX_OFF_CHAIN_BYTES, 'x'))).toMatch(/^0x/)
    expect(() => hashTypedData(sized(MAX_OFF_CHAIN_BYTES + 1, 'x'))).toThrow(withCode('message_too_large'))
    expect(() => hashTypedData(one('string', '漢'.repeat(11_000)))).toThrow(withCode('message_too_large'))
  })

  test('rejects content that takes long to hash: many structs with one long type, ten thousand strings, lists or structs', () => {
    const structs = Array.from({ length: 200 }, (_, index) => `A${index}`)
    const wide = {
      P: structs.map((name) => ({ name: name.toLowerCase(), type: name })),
      ...Object.fromEntries(structs.map((name) => [name, [{ name: 'c', type: 'C[]' }]])),
      C: [{ name: 'c'.repeat(14_000), type: 'bool' }],
    }
    const message = Object.fromEntries(structs.map((name) => [name.toLowerCase(), { c: [] }]))
    const expensive = [
      { ...one('', ''), types: wide, primaryType: 'P', message },
      { ...one('E[]', Array(10_000).fill({})), types: { ...one('E[]', []).types, E: [] } },
      one('string[]', Array(10_800).fill('')),
      one('bytes[]', Array(6_000).fill('0x')),
      one('uint8[][]', Array(10_800).fill([])),
    ]
    for (const typedData of expensive) expect(() => hashTypedData(typedData)).toThrow(withCode('invalid_typed_data'))
  })

  test('hashes types of many lists, each of many items, and a list of all the numbers that fit', () => {
    const members = (type: string) => Array.from({ length: 40 }, (_, index) => ({ name: `m${index}`, type }))
    const deep = Object.fromEntries(Array.from({ length: 7 }, (_, level) => [`S${level}`, members(`S${level + 1}[]`)]))
    const empty = Object.fromEntries(members('').map(({ name }) => [name, []]))
    const all = [
      { ...one('', ''), types: { ...deep, S7: [] }, primaryType: 'S0', message: empty },
      one('uint8[]', Array(16_300).fill(7)),
      one('string[]', Array(3_000).fill('')),
    ]
    for (const typedData of all) expect(digestOf(typedData)).toMatch(/^0x/)
  })
})
