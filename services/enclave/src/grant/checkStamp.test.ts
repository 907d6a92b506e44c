import { type Hex, type Kind, kinds, toStampBytes } from '@countersign/protocol/core'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../test/clientKey.ts'
import { createVerifyEs256 } from '../vault/es256.ts'
import { checkStamp } from './checkStamp.ts'

const verifyEs256 = createVerifyEs256()
const now = Date.parse('2026-06-15T12:00:00.123Z')
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

const client = createClient()
const address: Hex = `0x${'1b'.repeat(20)}`
const request = {
  address,
  vault: { policy: '5f'.repeat(32), rule: 2 },
  kind: 'transaction' as Kind,
  digest: new Uint8Array(32).fill(3),
}
const stamp = client.stamp({ ...request, issuedMs: now })
const check = (changes: Partial<Parameters<typeof checkStamp>[1]> = {}) =>
  checkStamp({ verifyEs256 }, { grant: client, stamp, request, now, ...changes })

function flip(bytes: Uint8Array, bit: number): Buffer {
  const changed = Buffer.from(bytes)
  changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
  return changed
}

describe('a session with a client key', () => {
  test.each(Object.keys(kinds) as Kind[])('accepts the stamp of its key for kind %s, and for no other kind', (kind) => {
    const own = client.stamp({ ...request, kind, issuedMs: now })
    for (const other of Object.keys(kinds) as Kind[]) {
      const expected = other === kind ? undefined : 'stamp_invalid'
      expect(check({ stamp: own, request: { ...request, kind: other } })).toBe(expected)
    }
  })

  test('accepts a stamp again, and both values of s', () => {
    expect([check(), check()]).toEqual([undefined, undefined])
    const s = BigInt(`0x${stamp.signature.slice(64)}`)
    const signature = stamp.signature.slice(0, 64) + (ORDER - s).toString(16).padStart(64, '0')
    expect(check({ stamp: { ...stamp, signature } })).toBeUndefined()
  })

  test('needs a stamp', () => {
    expect(check({ stamp: undefined })).toBe('stamp_missing')
  })

  test('rejects the stamp of another key', () => {
    expect(check({ stamp: createClient().stamp({ ...request, issuedMs: now }) })).toBe('stamp_invalid')
  })

  test.each([
    ['address', { address: `0x${'1b'.repeat(19)}1a` as Hex }],
    ['policy', { vault: { ...request.vault, policy: `${'5f'.repeat(31)}5e` } }],
    ['wallet instead of a vault', { vault: null }],
    ['rule', { vault: { ...request.vault, rule: 3 } }],
    ['no rule', { vault: { ...request.vault, rule: null } }],
    ['digest', { digest: Uint8Array.from({ length: 32 }, (_, index) => (index === 31 ? 2 : 3)) }],
    ['no digest', { digest: null }],
  ])('rejects a stamp for another %s', (_, changes) => {
    expect(check({ request: { ...request, ...changes } })).toBe('stamp_invalid')
  })

  test('rejects a stamp with any bit of its signature changed', () => {
    const bytes = Buffer.from(stamp.signature, 'hex')
    for (let bit = 0; bit < 512; bit++) {
      expect(check({ stamp: { ...stamp, signature: flip(bytes, bit).toString('hex') } })).toBe('stamp_invalid')
    }
  })

  test('rejects a stamp over the request with any bit of any field changed', () => {
    const bytes = toStampBytes({ ...request, issuedMs: now })
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const signature = client.sign(flip(bytes, bit)).toString('hex')
      expect(check({ stamp: { issuedMs: now, signature } })).toBe('stamp_invalid')
    }
    expect(check({ stamp: { issuedMs: now, signature: client.sign(bytes).toString('hex') } })).toBeUndefined()
    expect(check({ stamp: { ...stamp, issuedMs: now + 1 } })).toBe('stamp_invalid')
  })

  test.each([
    [-300_000, undefined],
    [-300_001, 'stamp_time'],
    [60_000, undefined],
    [60_001, 'stamp_time'],
  ])('a stamp issued %i ms from now: %s', (offset, expected) => {
    expect(check({ stamp: client.stamp({ ...request, issuedMs: now + offset }) })).toBe(expected)
  })
})

test('a session without a client key needs no stamp, and rejects one', () => {
  const grant = { clientKey: null }
  expect(check({ grant, stamp: undefined })).toBeUndefined()
  expect(check({ grant })).toBe('stamp_invalid')
})
