import { describe, expect, test } from 'vitest'
import { toSignedSummary } from './signedSummary.ts'

const address = `0x${'22'.repeat(20)}` as const
const payment = { to: address, value: '5', data: '0x', nonce: 7 } as const

describe('toSignedSummary', () => {
  test('a transaction, without a kind', () => {
    const subject = { ...payment, gas: '21000', maxFeePerGas: '2', maxPriorityFeePerGas: '1' }
    expect(toSignedSummary({ kind: 'transaction', subject })).toStrictEqual(payment)
  })

  test.each([67, 68, 69, 4096])('of %i bytes of calldata at most 68', (bytes) => {
    const subject = { ...payment, data: `0x${'ab'.repeat(bytes)}` } as const
    const summary = toSignedSummary({ kind: 'transaction', subject })
    expect(summary).toStrictEqual({ ...payment, data: `0x${'ab'.repeat(Math.min(bytes, 68))}` })
  })

  test('an authorization: the code, not the signature', () => {
    const subject = { chainId: 1, address, nonce: 7, digest: '0x11', signature: '0x22' } as const
    expect(toSignedSummary({ kind: 'authorization', subject })).toStrictEqual({
      kind: 'authorization',
      implementation: address,
    })
  })

  test('an off-chain signature: its kind', () => {
    expect(toSignedSummary({ kind: 'off-chain', subject: { commitment: '33' } })).toStrictEqual({ kind: 'off-chain' })
  })
})
