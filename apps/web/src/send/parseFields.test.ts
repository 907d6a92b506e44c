import type { Hex } from '@countersign/sdk'
import { describe, expect, test } from 'vitest'
import type { Token } from '../config.ts'
import { toTransferData } from '../token/erc20.ts'
import { parseFields, type SendFields } from './parseFields.ts'

const to: Hex = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const token: Token = { chainId: 1, address: `0x${'ab'.repeat(20)}`, symbol: 'TEST', decimals: 6, name: 'Test Token' }
const parse = (change: Partial<SendFields>) =>
  parseFields({ asset: '', to, amount: '1', data: '', gas: '', ...change }, { tokens: [token], coin: 'ETH' })

describe('parseFields', () => {
  test.each([
    ['1', 10n ** 18n],
    ['1.', 10n ** 18n],
    ['.5', 5n * 10n ** 17n],
    [' 0.000000000000000001 ', 1n],
  ])('reads the amount %j', (amount, valueWei) => {
    expect(parse({ amount })).toEqual({ payment: { to, valueWei, data: '0x', gas: null, transfer: null } })
  })

  test('adds a checksum to an address without one', () => {
    expect(parse({ to: ` ${to.toLowerCase()}\n` })).toMatchObject({ payment: { to } })
    expect(parse({ to: `0x${to.slice(2).toUpperCase()}` })).toMatchObject({ payment: { to } })
  })

  test('accepts a call without an amount and keeps its gas', () => {
    expect(parse({ amount: '', data: '0xABCD', gas: '60000' })).toEqual({
      payment: { to, valueWei: 0n, data: '0xabcd', gas: 60_000n, transfer: null },
    })
  })

  test.each([
    ['to', '0x'],
    ['to', to.slice(2)],
    ['to', `${to}00`],
    ['to', 'vitalik.eth'],
    ['amount', ''],
    ['amount', '0'],
    ['amount', '0.0'],
    ['amount', '+1'],
    ['amount', '1,5'],
    ['amount', '1e18'],
    ['amount', '0x10'],
    ['amount', '.'],
    ['amount', 'NaN'],
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
  ] as const)('shows the error of %s %.30s only at its field', (name, value) => {
    expect(parse({ [name]: value })).toEqual({ errors: { [name]: expect.stringMatching(/\.$/) } })
  })

  test.each([
    ['to', '', 'Enter the recipient’s address.'],
    ['to', '0x1234', 'Enter 0x followed by 40 hex digits.'],
    ['to', to.replace('C8', 'c8'), 'This address has a wrong checksum. Copy it again.'],
    ['amount', '-1', 'Enter a positive amount.'],
    ['amount', '0.0000000000000000001', 'Enter at most 18 decimals for ETH, not 19.'],
  ] as const)('has a specific error for %s %j', (name, value, message) => {
    expect(parse({ [name]: value })).toEqual({ errors: { [name]: message } })
  })

  test('reports every error at once', () => {
    const result = parse({ asset: '0x1', to: 'x', amount: 'x', data: 'x', gas: 'x' })
    expect(Object.keys('errors' in result ? result.errors : {})).toEqual([...['asset', 'to', 'amount', 'data', 'gas']])
  })
})

describe('a token', () => {
  const asset = token.address

  test('is a contract call in the token’s decimals, without the fields of a custom call', () => {
    const transfer = { token, recipient: to, amount: 1_500_000n }
    expect(parse({ asset, amount: '1.5', data: '0xdead', gas: '99999' })).toEqual({
      payment: {
        to: expect.stringMatching(/^0x(ab){20}$/i),
        valueWei: 0n,
        data: toTransferData(transfer),
        gas: null,
        transfer,
      },
    })
  })

  test.each([
    ['amount', '0.0000001', /at most 6 decimals for TEST/],
    ['amount', '0', /above zero/],
    ['amount', '', /Enter an amount/],
    ['amount', '9'.repeat(73), /more TEST than can exist/],
    ['to', '', /recipient’s address/],
    ['asset', `0x${'cd'.repeat(20)}`, /Unknown token/],
  ] as const)('shows an error for %s %.20s', (name, value, words) => {
    expect(parse({ asset, [name]: value })).toEqual({ errors: { [name]: expect.stringMatching(words) } })
  })
})
