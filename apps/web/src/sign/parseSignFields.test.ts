import { describe, expect, test } from 'vitest'
import { parseSignFields, type SignKind } from './parseSignFields.ts'

const parse = (kind: SignKind, text: string) => parseSignFields({ kind, text }, { chainId: 31337 })
const order = {
  domain: { name: 'Shop', chainId: 31337 },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: '1' },
}

describe('parseSignFields', () => {
  test('signs text byte for byte, without trimming or converting', () => {
    expect(parse('text', ' é\n')).toEqual({ shown: { kind: 'message', content: { message: '0x20c3a90a' } } })
    expect(parse('text', '0xabcd')).toMatchObject({ shown: { content: { message: '0x307861626364' } } })
  })

  test('rejects an unpaired surrogate, because encoders would replace it', () => {
    expect(parse('text', 'a\ud800')).toMatchObject({ error: expect.stringContaining('invalid character') })
    expect(parse('typed-data', JSON.stringify({ ...order, domain: { name: '\ud800' } }))).toMatchObject({
      error: expect.stringContaining('Invalid typed data'),
    })
  })

  test('keeps typed data as pasted and accepts its chain ID in any notation', () => {
    expect(parse('typed-data', ` ${JSON.stringify(order, undefined, 2)}\n`)).toEqual({
      shown: { kind: 'typed-data', content: order },
    })
    const hex = { ...order, domain: { name: 'Shop', chainId: '0x7a69' } }
    expect(parse('typed-data', JSON.stringify(hex))).toHaveProperty('shown')
  })

  test.each([
    ['a member too many', { ...order, extra: 1 }],
    ['a value too many', { ...order, message: { amount: '1', tip: '2' } }],
    ['a number that JSON rounds', { ...order, message: { amount: 2 ** 53 } }],
    ['a primary type that is not there', { ...order, primaryType: 'Permit' }],
    ['no types', { ...order, types: null }],
    ['nothing', null],
  ])('rejects %s', (_, typedData) => {
    expect(parse('typed-data', JSON.stringify(typedData))).toMatchObject({
      error: expect.stringContaining('Invalid typed data'),
    })
  })

  const twice = JSON.stringify(order).replace('"amount":"1"', '"amount":"1","amount":"9"')
  const elsewhere = JSON.stringify({ ...order, domain: { ...order.domain, chainId: 1 } })
  test.each<[string, SignKind, string, string]>([
    ['no text', 'text', '', 'Enter a message.'],
    ['too long a text', 'text', 'x'.repeat(17_000), 'This is too long to sign.'],
    ['half a byte', 'hex', '0xabc', 'Enter 0x followed by an even number of hex digits.'],
    ['text for bytes', 'hex', 'hello', 'Enter 0x followed by an even number of hex digits.'],
    ['no JSON', 'typed-data', '{', 'This isn’t valid JSON.'],
    ['a repeated member', 'typed-data', twice, 'A member appears twice, so the data is ambiguous.'],
    ['another chain', 'typed-data', elsewhere, 'This is for chain 1. The wallet is on chain 31337.'],
    ['no domain', 'typed-data', JSON.stringify({ ...order, domain: {} }), 'Invalid typed data: domain is empty.'],
    [
      'a struct that lacks a value',
      'typed-data',
      JSON.stringify({ ...order, message: {} }),
      'Invalid typed data: a struct does not have exactly its members.',
    ],
    [
      'a member too many',
      'typed-data',
      JSON.stringify({ ...order, extra: 1 }),
      'Invalid typed data: not exactly the expected members. Expected domain, types, primaryType, message.',
    ],
    [
      'a list',
      'typed-data',
      '[]',
      'Invalid typed data: not exactly the expected members. Expected domain, types, primaryType, message.',
    ],
    ['nested too deeply', 'typed-data', '['.repeat(30) + ']'.repeat(30), 'This is nested too deeply to sign.'],
  ])('has a specific error for %s', (_, kind, text, error) => {
    expect(parse(kind, text)).toEqual({ error })
  })
})
