import { describe, expect, test } from 'vitest'
import { parseFields, type SendFields } from './parseFields.ts'

const to = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const parse = (change: Partial<SendFields>) => parseFields({ to, amount: '1', data: '', gas: '', ...change })

describe('parseFields', () => {
  test.each([
    ['1', 10n ** 18n],
    ['1.', 10n ** 18n],
    ['.5', 5n * 10n ** 17n],
    [' 0.000000000000000001 ', 1n],
  ])('an amount of %j', (amount, valueWei) => {
    expect(parse({ amount })).toEqual({ payment: { to, valueWei, data: '0x', gas: null } })
  })

  test('an address without a checksum gets one', () => {
    expect(parse({ to: ` ${to.toLowerCase()}\n` })).toMatchObject({ payment: { to } })
    expect(parse({ to: `0x${to.slice(2).toUpperCase()}` })).toMatchObject({ payment: { to } })
  })

  test('a call may come without an amount, and keeps its gas', () => {
    expect(parse({ amount: '', data: '0xABCD', gas: '60000' })).toEqual({
      payment: { to, valueWei: 0n, data: '0xabcd', gas: 60_000n },
    })
  })

  test.each([
    ['to', ''],
    ['to', '0x'],
    ['to', to.slice(2)],
    ['to', `${to}00`],
    ['to', to.replace('C8', 'c8')],
    ['to', 'vitalik.eth'],
    ['amount', ''],
    ['amount', '0'],
    ['amount', '0.0'],
    ['amount', '-1'],
    ['amount', '+1'],
    ['amount', '1,5'],
    ['amount', '1e18'],
    ['amount', '0x10'],
    ['amount', '.'],
    ['amount', 'NaN'],
    ['amount', '0.1234567890123456789'],
    ['amount', '9'.repeat(79)],
    ['amount', '9'.repeat(100_000)],
    ['data', '0x1'],
    ['data', 'abcd'],
    ['data', '0xzz'],
    ['data', `0x${'00'.repeat(49 * 1024)}`],
    ['gas', '20999'],
    ['gas', '1.5'],
    ['gas', '-21000'],
    ['gas', '21 000'],
    ['gas', '9'.repeat(19)],
  ] as const)('%s: %.30s is told beside it, and nowhere else', (name, value) => {
    expect(parse({ [name]: value })).toEqual({ errors: { [name]: expect.stringMatching(/\.$/) } })
  })

  test('every fault at once', () => {
    const result = parseFields({ to: 'x', amount: 'x', data: 'x', gas: 'x' })
    expect(Object.keys('errors' in result ? result.errors : {})).toEqual(['to', 'amount', 'data', 'gas'])
  })
})
