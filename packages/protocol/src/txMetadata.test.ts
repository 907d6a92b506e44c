import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { assertTxMetadata, parseTxMetadata, type TxMetadata } from './txMetadata.ts'

const metadata: TxMetadata = {
  chainId: 11155111,
  nonce: 0,
  to: `0x${'ab'.repeat(20)}`,
  value: '1000000000000000000',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '30000000000',
  maxPriorityFeePerGas: '1500000000',
}
const max256 = String(2n ** 256n - 1n)

describe('transaction metadata', () => {
  test.each([
    ['as it is', {}],
    [
      'the largest numbers',
      { chainId: Number.MAX_SAFE_INTEGER, nonce: Number.MAX_SAFE_INTEGER, gas: String(2n ** 64n - 1n) },
    ],
    ['the largest amounts', { value: max256, maxFeePerGas: max256, maxPriorityFeePerGas: max256 }],
    ['zeros', { value: '0', gas: '0', maxFeePerGas: '0', maxPriorityFeePerGas: '0' }],
    ['equal fees', { maxFeePerGas: '1500000000' }],
    ['128 KiB of data', { data: `0x${'00'.repeat(131_072)}` }],
    ['hex in either case', { to: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', data: '0xAb' }],
  ])('takes %s', (_, change) => {
    expect(() => assertTxMetadata({ ...metadata, ...change })).not.toThrow()
  })

  test('writes metadata in canonical form', () => {
    const to = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
    expect(parseTxMetadata({ ...metadata, to, data: '0xAB' })).toEqual({
      ...metadata,
      to: to.toLowerCase(),
      data: '0xab',
    })
    expect(() => parseTxMetadata({ ...metadata, to: '0x' })).toThrow(withCode('invalid_tx_metadata'))
  })

  test.each(Object.keys(metadata) as (keyof TxMetadata)[])(
    'rejects metadata with a missing or malformed %s',
    (name) => {
      const { [name]: _, ...rest } = metadata
      expect(() => assertTxMetadata(rest)).toThrow(withCode('invalid_tx_metadata'))
      for (const value of [undefined, null, 1n, '', [], {}, true]) {
        expect(() => assertTxMetadata({ ...metadata, [name]: value })).toThrow(withCode('invalid_tx_metadata'))
      }
    },
  )

  test.each(['value', 'gas', 'maxFeePerGas', 'maxPriorityFeePerGas'])(
    'accepts only a decimal integer as %s',
    (name) => {
      for (const wrong of [
        '-1',
        '+1',
        '01',
        '00',
        '1.0',
        '1e3',
        '0x1',
        ' 1',
        '1 ',
        '1\n',
        '1_000',
        '١',
        1,
        '1'.repeat(1000),
      ]) {
        expect(() => assertTxMetadata({ ...metadata, [name]: wrong })).toThrow(withCode('invalid_tx_metadata'))
      }
    },
  )

  test.each([
    ['value of 2^256', { value: String(2n ** 256n) }],
    ['maxFeePerGas of 2^256', { maxFeePerGas: String(2n ** 256n) }],
    ['both fees of 2^256', { maxFeePerGas: String(2n ** 256n), maxPriorityFeePerGas: String(2n ** 256n) }],
    ['gas of 2^64', { gas: String(2n ** 64n) }],
    ['a tip above the fee', { maxFeePerGas: '1499999999' }],
    ['chain 0', { chainId: 0 }],
    ['chain -1', { chainId: -1 }],
    ['chain 1.5', { chainId: 1.5 }],
    ['chain 2^53', { chainId: 2 ** 53 }],
    ['a chain as text', { chainId: '1' }],
    ['nonce -1', { nonce: -1 }],
    ['nonce -0', { nonce: -0 }],
    ['nonce 0.5', { nonce: 0.5 }],
    ['nonce 2^53', { nonce: 2 ** 53 }],
    ['a nonce as text', { nonce: '0' }],
    ['a creation', { to: '0x' }],
    ['19 bytes of to', { to: `0x${'ab'.repeat(19)}` }],
    ['21 bytes of to', { to: `0x${'ab'.repeat(21)}` }],
    ['to without 0x', { to: 'ab'.repeat(21) }],
    ['to with 0X', { to: `0X${'ab'.repeat(20)}` }],
    ['to with a line end', { to: `0x${'ab'.repeat(19)}a\n` }],
    ['to with a foreign digit', { to: `0x${'ab'.repeat(19)}ag` }],
    ['half a byte of data', { data: '0x0' }],
    ['data without 0x', { data: 'abcd' }],
    ['data that is not hex', { data: '0xzz' }],
    ['a byte more than 128 KiB of data', { data: `0x${'00'.repeat(131_073)}` }],
    ['an access list', { accessList: [] }],
    ['a type', { type: '0x2' }],
  ])('refuses %s', (_, change) => {
    expect(() => assertTxMetadata({ ...metadata, ...change })).toThrow(withCode('invalid_tx_metadata'))
  })

  test.each([null, undefined, 'x', [metadata], Object.create(metadata)])('rejects %o', (value) => {
    expect(() => assertTxMetadata(value)).toThrow(withCode('invalid_tx_metadata'))
  })
})
