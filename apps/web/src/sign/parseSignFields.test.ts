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
  test('a text is signed to the byte: nothing is trimmed, joined or converted', () => {
    expect(parse('text', ' é\n')).toEqual({ shown: { kind: 'message', content: { message: '0x20c3a90a' } } })
    expect(parse('text', '0xabcd')).toMatchObject({ shown: { content: { message: '0x307861626364' } } })
  })

  test('half a character is refused: encoders would replace it, and another text would be signed', () => {
    expect(parse('text', 'a\ud800')).toMatchObject({ error: expect.stringContaining('half a character') })
    expect(parse('typed-data', JSON.stringify({ ...order, domain: { name: '\ud800' } }))).toMatchObject({
      error: expect.stringContaining('in one way only'),
    })
  })

  test('typed data is what was pasted, with a chain in any spelling', () => {
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
  ])('%s is refused', (_, typedData) => {
    expect(parse('typed-data', JSON.stringify(typedData))).toMatchObject({
      error: expect.stringContaining('in one way only'),
    })
  })

  test('nested too deeply', () => {
    expect(parse('typed-data', '['.repeat(30) + ']'.repeat(30))).toEqual({
      error: 'This is nested too deeply to be signed.',
    })
  })
})
