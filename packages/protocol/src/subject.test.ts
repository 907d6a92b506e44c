import { createHash } from 'node:crypto'
import { keccak256, toRlp } from 'viem'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { toHex } from './hex.ts'
import { type AuthorizationSubject, hashSubject, toEventHash, toSignedDigest, toSignedSummary } from './subject.ts'

const commitment = 'ab'.repeat(32)
const authorization: AuthorizationSubject = {
  chainId: 1,
  address: `0x${'11'.repeat(20)}`,
  nonce: 0,
  digest: `0x${'22'.repeat(32)}`,
  signature: `0x00${'33'.repeat(31)}${'44'.repeat(32)}1c`,
}

test('a subject is hashed under its tag, in canonical form', () => {
  const preimage = `countersign/subject/v1\0{"commitment":"${commitment}"}`
  expect(toHex(hashSubject({ commitment }))).toBe(createHash('sha256').update(preimage).digest('hex'))
  const reversed = Object.fromEntries(Object.entries(authorization).toReversed()) as AuthorizationSubject
  expect(hashSubject(reversed)).toEqual(hashSubject(authorization))
  expect(hashSubject({ ...authorization, nonce: 1 })).not.toEqual(hashSubject(authorization))
})

test('the event has the hash of a transaction, and the commitment of an off-chain signature', () => {
  const subject = { txHash: `0x${'55'.repeat(32)}` } as never
  expect(toEventHash({ kind: 'transaction', subject })).toBe(`0x${'55'.repeat(32)}`)
  expect(toEventHash({ kind: 'off-chain', subject: { commitment } })).toBe(`0x${commitment}`)
  const address = { address: `0x${'66'.repeat(20)}`, policy: null, owner: '88'.repeat(32) } as const
  expect(toEventHash({ kind: 'address', subject: address })).toBe(`0x${toHex(hashSubject(address))}`)
  expect(toSignedDigest({ kind: 'address', subject: address })).toBe(`0x${toHex(hashSubject(address))}`)
  expect(hashSubject({ ...address, policy: '77'.repeat(32) })).not.toEqual(hashSubject(address))
})

test('the event has keccak256 of an authorization’s signed tuple, with scalars without leading zeros', () => {
  const tuple = ['0x01', authorization.address, '0x', '0x01', `0x${'33'.repeat(31)}`, `0x${'44'.repeat(32)}`] as const
  expect(toEventHash({ kind: 'authorization', subject: authorization })).toBe(keccak256(toRlp([...tuple])))
})

test('rejects an authorization without a signature', () => {
  const subject = { ...authorization, signature: `0x${'00'.repeat(65)}` } as const
  expect(() => toEventHash({ kind: 'authorization', subject })).toThrow(withCode('signature_malformed'))
})

const code = `0x${'22'.repeat(20)}` as const
const payment = { to: code, value: '5', data: '0x', nonce: 7 } as const

describe('toSignedSummary', () => {
  test('a transaction, without a kind', () => {
    const subject = { ...payment, gas: '21000', maxFeePerGas: '2', maxPriorityFeePerGas: '1' }
    expect(toSignedSummary({ kind: 'transaction', subject })).toStrictEqual(payment)
  })

  test.each([67, 68, 69, 4096])('keeps at most 68 of %i bytes of calldata', (bytes) => {
    const subject = { ...payment, data: `0x${'ab'.repeat(bytes)}` } as const
    const summary = toSignedSummary({ kind: 'transaction', subject })
    expect(summary).toStrictEqual({ ...payment, data: `0x${'ab'.repeat(Math.min(bytes, 68))}` })
  })

  test('an authorization: the code, not the signature', () => {
    const subject = { chainId: 1, address: code, nonce: 7, digest: '0x11', signature: '0x22' } as const
    expect(toSignedSummary({ kind: 'authorization', subject })).toStrictEqual({
      kind: 'authorization',
      implementation: code,
    })
  })

  test('an off-chain signature: its kind', () => {
    expect(toSignedSummary({ kind: 'off-chain', subject: { commitment: '33' } })).toStrictEqual({ kind: 'off-chain' })
  })
})
