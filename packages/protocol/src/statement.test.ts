import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import { assertStatement, hashLeaf, type Statement, toStatementBytes, toStatementText } from './statement.ts'

const statement: Statement = {
  type: 'countersign/signing/v1',
  keyId: '0a'.repeat(16),
  address: `0x${'1b'.repeat(20)}`,
  publicKey: `04${'2c'.repeat(64)}`,
  digest: `0x${'3d'.repeat(32)}`,
  signature: `0x${'4e'.repeat(64)}1b`,
  txHash: `0x${'5f'.repeat(32)}`,
  chainId: 11155111,
  entropyHash: '6a'.repeat(32),
  coordinatorKey: '7b'.repeat(32),
  signedAt: '2025-01-02T03:04:05.678Z',
}

const upperHalf = '7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a1'
const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141'

describe('statement', () => {
  test('its bytes are canonical JSON, its leaf SHA-256(0x00 ‖ bytes)', () => {
    const json = `{"address":"0x${'1b'.repeat(20)}","chainId":11155111,"coordinatorKey":"${'7b'.repeat(32)}","digest":"0x${'3d'.repeat(32)}","entropyHash":"${'6a'.repeat(32)}","keyId":"${'0a'.repeat(16)}","publicKey":"04${'2c'.repeat(64)}","signature":"0x${'4e'.repeat(64)}1b","signedAt":"2025-01-02T03:04:05.678Z","txHash":"0x${'5f'.repeat(32)}","type":"countersign/signing/v1"}`
    expect(new TextDecoder().decode(toStatementBytes(statement))).toBe(json)
    expect(toHex(hashLeaf(statement))).toBe(createHash('sha256').update(`\0${json}`).digest('hex'))
  })

  test('the order of the members does not matter', () => {
    const reversed = Object.fromEntries(Object.entries(statement).reverse()) as Statement
    expect(toHex(hashLeaf(reversed))).toBe(toHex(hashLeaf(statement)))
  })

  test.each(Object.keys(statement) as (keyof Statement)[])('rejects a statement without %s', (name) => {
    const { [name]: _, ...rest } = statement
    expect(() => assertStatement(rest)).toThrow(withCode('statement_malformed'))
    for (const value of [undefined, null, 1n, '', [], {}]) {
      expect(() => assertStatement({ ...statement, [name]: value })).toThrow(withCode('statement_malformed'))
    }
  })

  test.each(['keyId', 'publicKey', 'entropyHash', 'coordinatorKey'] as const)(
    '%s is lower-case hex without 0x',
    (name) => {
      const right = statement[name]
      for (const wrong of [
        `0x${right}`,
        right.toUpperCase(),
        right.slice(2),
        `${right}00`,
        right.replace(/.$/, 'g'),
        `${right}\n`,
      ]) {
        expect(() => assertStatement({ ...statement, [name]: wrong })).toThrow(withCode('statement_malformed'))
      }
    },
  )

  test.each(['address', 'digest', 'signature', 'txHash'] as const)('%s is lower-case hex with 0x', (name) => {
    const right = statement[name]
    for (const wrong of [
      right.slice(2),
      right.toUpperCase(),
      `0X${right.slice(2)}`,
      `0x${right.slice(2).toUpperCase()}`,
      `0x${right.slice(4)}`,
      `0x00${right.slice(2)}`,
      right.replace(/.$/, 'g'),
      `${right}\n`,
    ]) {
      expect(() => assertStatement({ ...statement, [name]: wrong })).toThrow(withCode('statement_malformed'))
    }
  })

  test('rejects an address with an EIP-55 checksum', () => {
    const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
    expect(() => assertStatement({ ...statement, address })).toThrow(withCode('statement_malformed'))
    expect(() => assertStatement({ ...statement, address: address.toLowerCase() })).not.toThrow()
  })

  test.each([
    ['another type', { type: 'countersign/signing/v2' }],
    ['a compressed key', { publicKey: `02${'2c'.repeat(64)}` }],
    ['a signature with v = 0', { signature: `0x${'4e'.repeat(64)}00` }],
    ['a signature with v = 29', { signature: `0x${'4e'.repeat(64)}1d` }],
    ['a signature with s in the upper half', { signature: `0x${'4e'.repeat(32)}${upperHalf}1b` }],
    ['a signature with r = n', { signature: `0x${order}${'4e'.repeat(32)}1b` }],
    ['a signature with s = 0', { signature: `0x${'4e'.repeat(32)}${'00'.repeat(32)}1b` }],
    ['chain 0', { chainId: 0 }],
    ['chain -1', { chainId: -1 }],
    ['chain 1.5', { chainId: 1.5 }],
    ['chain 2^53', { chainId: 2 ** 53 }],
    ['a chain as text', { chainId: '1' }],
    ['a time without milliseconds', { signedAt: '2025-01-02T03:04:05Z' }],
    ['a time with microseconds', { signedAt: '2025-01-02T03:04:05.678000Z' }],
    ['a time with an offset', { signedAt: '2025-01-02T03:04:05.678+00:00' }],
    ['a time in lower case', { signedAt: '2025-01-02t03:04:05.678z' }],
    ['a day that does not exist', { signedAt: '2025-02-30T03:04:05.678Z' }],
    ['hour 24', { signedAt: '2025-01-02T24:00:00.000Z' }],
    ['second 60', { signedAt: '2016-12-31T23:59:60.000Z' }],
    ['month 13', { signedAt: '2025-13-02T03:04:05.678Z' }],
    ['the year 12025', { signedAt: '+012025-01-02T03:04:05.678Z' }],
    ['a year of six digits', { signedAt: '+002025-01-02T03:04:05.678Z' }],
    ['digits of another script', { signedAt: '٢٠٢٥-01-02T03:04:05.678Z' }],
    ['a member too many', { slug: 'x' }],
  ])('refuses %s', (_, change) => {
    const wrong = { ...statement, ...change } as Statement
    expect(() => assertStatement(wrong)).toThrow(withCode('statement_malformed'))
    expect(() => toStatementBytes(wrong)).toThrow(withCode('statement_malformed'))
    expect(() => hashLeaf(wrong)).toThrow(withCode('statement_malformed'))
  })

  test.each([
    ['null', null],
    ['text', JSON.stringify(statement)],
    ['a list', Object.values(statement)],
    ['an object that inherits its members', Object.create(statement)],
    ['a getter', Object.defineProperty({ ...statement }, 'digest', { enumerable: true, get: () => statement.digest })],
  ])('refuses %s', (_, value) => {
    expect(() => assertStatement(value)).toThrow(withCode('statement_malformed'))
  })

  test('the fast text equals the canonical JSON, for any order of the members', () => {
    const reversed = Object.fromEntries(Object.entries(statement).toReversed()) as Statement
    for (const one of [statement, reversed]) {
      expect(toStatementText(one)).toBe(new TextDecoder().decode(toStatementBytes(statement)))
    }
  })
})
