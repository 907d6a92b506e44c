import fc from 'fast-check'
import { keccak256, toRlp, toHex as toViemHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { hashAuthorization as hashWithViem, recoverAuthorizationAddress } from 'viem/utils'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import {
  type Authorization,
  assertAuthorizationAllowed,
  hashAuthorization,
  hashSignedAuthorization,
  parseAuthorization,
} from './authorization.ts'
import { fromPrefixedHex, type Hex, toHex } from './hex.ts'

const address: Hex = '0x63c0c19a282a1b52b07dd5a65b58948a07dae32b'
const good: Authorization = { chainId: 1, address, nonce: 0 }
const natural = fc.oneof(fc.constantFrom(0, 1, 127, 128, 255, 256, Number.MAX_SAFE_INTEGER), fc.maxSafeNat())
const authorization = fc.record({
  chainId: natural,
  address: fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes): Hex => `0x${toHex(bytes)}`),
  nonce: natural,
})
const scalar = (value: bigint | number): Hex => (BigInt(value) === 0n ? '0x' : toViemHex(BigInt(value)))
const toWholeBytes = (hex: Hex): Hex => (hex.length % 2 === 0 ? hex : `0x0${hex.slice(2)}`)

describe('EIP-7702', () => {
  test('hashes 2,000 random authorizations like viem', () => {
    fc.assert(
      fc.property(authorization, (one) => {
        expect(`0x${toHex(hashAuthorization(one))}`).toBe(hashWithViem(one))
      }),
      { numRuns: 2_000 },
    )
  })

  test('an account signs this digest, and the event has keccak256(RLP) of all six fields', async () => {
    const account = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')
    for (const [index, one] of fc.sample(authorization, 30).entries()) {
      const signature = await account.sign({ hash: `0x${toHex(hashAuthorization(one))}` })
      expect(await recoverAuthorizationAddress({ authorization: one, signature })).toBe(account.address)
      const [r, s] = [`0x${signature.slice(2, 66)}`, `0x${signature.slice(66, 130)}`] as [Hex, Hex]
      const yParity = signature.endsWith('1c') ? 1 : 0
      const fields = [one.chainId, one.nonce, yParity, BigInt(r), BigInt(s)].map((value) => toWholeBytes(scalar(value)))
      const [chainId, nonce, ...rest] = fields as [Hex, Hex, ...Hex[]]
      const expected = keccak256(toRlp([chainId, one.address, nonce, ...rest]))
      expect([index, `0x${toHex(hashSignedAuthorization(one, fromPrefixedHex(signature)))}`]).toEqual([index, expected])
    }
  })

  test('accepts an address in upper case', () => {
    const upper = { ...good, address: `0x${address.slice(2).toUpperCase()}` as Hex }
    expect(hashAuthorization(upper)).toEqual(hashAuthorization(good))
    expect(parseAuthorization(upper)).toEqual(good)
  })
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['a list', [1, address, 0]],
  ['a member too few', { chainId: 1, address }],
  ['a member too many', { ...good, digest: `0x${'11'.repeat(32)}` }],
  ['a chain id as text', { ...good, chainId: '1' }],
  ['a negative chain id', { ...good, chainId: -1 }],
  ['a chain id above 2^53', { ...good, chainId: 2 ** 53 }],
  ['an address of 19 bytes', { ...good, address: `0x${'11'.repeat(19)}` }],
  ['no address', { ...good, address: null }],
  ['a nonce that is a fraction', { ...good, nonce: 0.5 }],
  ['-0 as a nonce', { ...good, nonce: -0 }],
])('refused: %s', (_, value) => {
  expect(() => parseAuthorization(value)).toThrow(withCode('invalid_request'))
  expect(() => hashAuthorization(value as Authorization)).toThrow(withCode('invalid_request'))
  expect(() => assertAuthorizationAllowed(value as Authorization, [address])).toThrow(withCode('invalid_request'))
})

describe('allowed authorizations', () => {
  test('allows code on the list, on one chain', () => {
    expect(() => assertAuthorizationAllowed(good, [`0x${'22'.repeat(20)}`, address])).not.toThrow()
  })

  test.each<[string, Partial<Authorization>, Hex[]]>([
    ['no code without a list', {}, []],
    ['no other code', { address: `0x${'22'.repeat(20)}` }, [address]],
    ['not even to undo an authorization, unless that is on the list', { address: `0x${'00'.repeat(20)}` }, [address]],
    ['nothing for all chains', { chainId: 0 }, [address]],
  ])('%s', (_, changes, implementations) => {
    expect(() => assertAuthorizationAllowed({ ...good, ...changes }, implementations)).toThrow(
      withCode('authorization_not_allowed'),
    )
  })
})
