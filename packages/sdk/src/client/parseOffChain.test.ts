import { runInNewContext } from 'node:vm'
import { hashMessage, hashTypedData, ServiceError, type TypedData, toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { parseAuthorization, parseMessage, parseTypedData, type SignTypedDataRequest } from './parseOffChain.ts'

const chainId = 31337
const address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

const order: SignTypedDataRequest = {
  domain: { name: 'App', version: '1', chainId, verifyingContract: address, salt: `0x${'ab'.repeat(32)}` },
  types: {
    Person: [
      { name: 'wallet', type: 'address' },
      { name: 'tags', type: 'bytes4[2]' },
    ],
    Order: [
      { name: 'buyer', type: 'Person' },
      { name: 'amounts', type: 'uint256[]' },
      { name: 'change', type: 'int8' },
      { name: 'note', type: 'string' },
      { name: 'data', type: 'bytes' },
      { name: 'open', type: 'bool' },
    ],
  },
  primaryType: 'Order',
  message: {
    buyer: { wallet: address, tags: ['0x01020304', '0xFFFFFFFF'] },
    amounts: [1, 2n ** 255n, '3', '0x04'],
    change: -128,
    note: 'grüße 🙂',
    data: '0x',
    open: true,
  },
}

function codeOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof ServiceError) return error.code
    throw error
  }
  return 'nothing thrown'
}

describe('messages', () => {
  test.each([
    ['text', { message: 'grüße 🙂' }, '0x6772c3bcc39f6520f09f9982'],
    ['text that looks like hex', { message: '0x1234' }, '0x307831323334'],
    ['nothing', { message: '' }, '0x'],
    ['bytes', { message: { raw: Uint8Array.of(0, 255) } }, '0x00ff'],
    ['bytes of a subclass', { message: { raw: Buffer.from([1]) } }, '0x01'],
    ['hex', { message: { raw: '0xABcd' } }, '0xabcd'],
  ] as const)('%s', (_name, request, message) => {
    const digest = `0x${toHex(hashMessage(message))}`
    expect(parseMessage(request)).toEqual({ kind: 'message', content: { message }, digest })
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['text without its name', 'hello'],
    ['no message', {}],
    ['a number', { message: 1 }],
    ['bytes without their name', { message: Uint8Array.of(1) }],
    ['raw that is missing', { message: {} }],
    ['raw that is a number', { message: { raw: 1 } }],
    ['raw that is an object, which has no bytes', { message: { raw: {} } }],
    ['raw that is a list', { message: { raw: [1, 2] } }],
    ['raw that is a view without bytes', { message: { raw: new DataView(new ArrayBuffer(1)) } }],
    ['half a byte', { message: { raw: '0xabc' } }],
    ['no prefix', { message: { raw: 'abcd' } }],
    ['no hex', { message: { raw: '0xzz' } }],
    ['a line break behind the hex', { message: { raw: '0xab\n' } }],
    ['the first half of a surrogate pair', { message: 'a\ud83d' }],
    ['the second half of a surrogate pair', { message: '\ude42b' }],
    ['halves in the wrong order', { message: '\ude42\ud83d' }],
  ])('rejects %s', (_name, request) => {
    expect(codeOf(() => parseMessage(request as never))).toBe('invalid_message')
  })
})

describe('typed data', () => {
  const parse = (change: object) => parseTypedData({ ...order, ...change } as SignTypedDataRequest, chainId)

  test('copies typed data as JSON, and hashes the copy as the enclave does', () => {
    const { kind, content, digest } = parseTypedData(order, chainId)
    expect(kind).toBe('typed-data')
    expect(content).toEqual({ ...order, message: { ...order.message, amounts: [1, String(2n ** 255n), '3', '0x04'] } })
    expect(JSON.parse(JSON.stringify(content))).toEqual(content)
    expect(digest).toBe(`0x${toHex(hashTypedData(content as TypedData))}`)
  })

  test.each<[string, object]>([
    ['a chain as a bigint', { name: 'App', chainId: 31337n }],
    ['a chain in decimal', { name: 'App', chainId: '31337' }],
    ['a chain in hex', { name: 'App', chainId: '0x7a69' }],
    ['no chain', { name: 'App' }],
    ['an empty name', { name: '' }],
    ['an empty version', { name: 'App', version: '' }],
    ['members that are undefined', { name: 'App', salt: undefined, chainId: undefined }],
    ['a contract', { verifyingContract: address }],
    ['members in another order', { chainId, name: 'App' }],
  ])('computes the enclave’s digest for a domain with %s', (_name, domain) => {
    const { content, digest } = parse({ domain })
    expect(digest).toBe(`0x${toHex(hashTypedData(JSON.parse(JSON.stringify(content))))}`)
  })

  // An EIP-1191 checksum of another chain, capitals, and a wrong checksum.
  test.each([
    '0x70997970c51812dc3A010C7d01b50E0D17Dc79c8',
    `0x${address.slice(2).toUpperCase()}`,
    address.replace('d', 'D'),
  ])('accepts an address without a valid checksum and sends it unchanged: %s', (wallet) => {
    const types = {
      Pair: [
        { name: 'wallets', type: 'address[2][]' },
        { name: 'text', type: 'string' },
      ],
      Pairs: [{ name: 'pairs', type: 'Pair[]' }],
    }
    const message = { pairs: [{ wallets: [[wallet, address]], text: wallet }] }
    const domain = { verifyingContract: wallet }
    const { content, digest } = parse({ types, primaryType: 'Pairs', domain, message })
    expect(content).toEqual({ types, primaryType: 'Pairs', domain, message })
    expect(digest).toBe(`0x${toHex(hashTypedData(content as TypedData))}`)
  })

  test.each(['interest', 'uintList', 'bytesLike'])('accepts a struct whose name begins like a type’s: %s', (name) => {
    const types = { Loan: [{ name: 'one', type: name }], [name]: [{ name: 'rate', type: 'uint8' }] }
    const { content, digest } = parse({ types, primaryType: 'Loan', message: { one: { rate: 7 } } })
    expect(digest).toBe(`0x${toHex(hashTypedData(content as TypedData))}`)
  })

  test('copies the request, so that later changes have no effect', () => {
    const request = structuredClone(order)
    const { content } = parseTypedData(request, chainId)
    ;(request.message.buyer as { wallet: string }).wallet = `0x${'00'.repeat(20)}`
    expect(content).toMatchObject({ message: { buyer: { wallet: address } } })
  })

  test('accepts objects of another realm', () => {
    const foreign = runInNewContext(`(${JSON.stringify({ ...order, message: { ...order.message, amounts: [] } })})`)
    expect(parseTypedData(foreign, chainId).kind).toBe('typed-data')
  })

  const deep: unknown[] = []
  for (let list = deep, depth = 0; depth < 100_000; depth++) {
    const inner: unknown[] = []
    list.push(inner)
    list = inner
  }
  const cycle: Record<string, unknown> = { ...order.message }
  cycle.buyer = cycle

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a list', []],
    ['no domain', { ...order, domain: undefined }],
    ['a domain that is null', { ...order, domain: null }],
    ['no types', { ...order, types: undefined }],
    ['no primary type', { ...order, primaryType: undefined }],
    ['a primary type that is not there', { ...order, primaryType: 'Bid' }],
    ['no message', { ...order, message: undefined }],
    ['a member that is missing', { ...order, message: { ...order.message, buyer: undefined } }],
    ['a number for an object', { ...order, message: { ...order.message, buyer: 1 } }],
    ['an invalid address', { ...order, message: { ...order.message, buyer: { wallet: '0x12', tags: [] } } }],
    ['an integer out of range', { ...order, message: { ...order.message, change: 128 } }],
    ['a fraction', { ...order, message: { ...order.message, change: 0.5 } }],
    ['a number above 2^53', { ...order, message: { ...order.message, amounts: [2 ** 53] } }],
    ['NaN', { ...order, message: { ...order.message, change: Number.NaN } }],
    ['a date', { ...order, message: { ...order.message, note: new Date() } }],
    ['a map', { ...order, message: new Map() }],
    ['a function', { ...order, message: { ...order.message, note: () => '' } }],
    ['a symbol', { ...order, message: { ...order.message, note: Symbol('note') } }],
    ['bytes that are not in hex', { ...order, message: { ...order.message, data: Uint8Array.of(1) } }],
    ['a hole in a list', { ...order, message: { ...order.message, amounts: new Array(1) } }],
    ['a getter', { ...order, message: Object.defineProperty({}, 'note', { get: () => '', enumerable: true }) }],
    ['half a surrogate pair', { ...order, message: { ...order.message, note: '\ud800' } }],
    ['half a surrogate pair in a name', { ...order, message: { ...order.message, '\udc00': '' } }],
    ['a cycle', { ...order, message: cycle }],
    ['a nesting that no stack holds', { ...order, message: { ...order.message, amounts: deep } }],
    ['another chain', { ...order, domain: { chainId: 1 } }],
    ['another chain as a bigint', { ...order, domain: { chainId: 1n } }],
    ['another chain as text', { ...order, domain: { chainId: '0x1' } }],
    ['every chain', { ...order, domain: { chainId: 0 } }],
    ['a chain that is not a number', { ...order, domain: { chainId: 'one' } }],
  ])('rejects %s', (_name, request) => {
    expect(codeOf(() => parseTypedData(request as never, chainId))).toBe('invalid_typed_data')
  })

  test('details contain no part of the content', () => {
    const message = { ...order.message, buyer: { wallet: 'a secret', tags: [] } }
    try {
      parse({ message })
      expect.fail('parsed')
    } catch (error) {
      expect(error).toMatchObject({ code: 'invalid_typed_data', details: expect.not.stringContaining('secret') })
    }
  })
})

describe('authorizations', () => {
  test('defaults to the client’s chain', () => {
    const parsed = { chainId, address: address.toLowerCase(), nonce: 0 }
    expect(parseAuthorization({ address, nonce: 0 }, chainId)).toEqual(parsed)
    expect(parseAuthorization({ chainId, address, nonce: 0 }, chainId)).toEqual(parsed)
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['every chain', { chainId: 0, address, nonce: 0 }],
    ['another chain', { chainId: 1, address, nonce: 0 }],
    ['a chain as text', { chainId: '31337', address, nonce: 0 }],
    ['a chain that is null', { chainId: null, address, nonce: 0 }],
    ['no address', { nonce: 0 }],
    ['half an address', { address: '0x1234', nonce: 0 }],
    ['a mistyped address', { address: address.replace('d', 'D'), nonce: 0 }],
    ['no nonce', { address }],
    ['a nonce below zero', { address, nonce: -1 }],
    ['a bigint for a nonce', { address, nonce: 0n }],
    ['a nonce above 2^53', { address, nonce: 2 ** 53 }],
    ['-0', { address, nonce: -0 }],
  ])('rejects %s', (_name, request) => {
    expect(codeOf(() => parseAuthorization(request as never, chainId))).toBe('invalid_request')
  })
})
