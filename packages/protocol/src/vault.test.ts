import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { computeApprovalChallenge, toAgentApprovalBytes, toVaultKeyIdInfo, toVaultKeyInfo } from './vault.ts'

const owner = new Uint8Array(32).fill(1)
const policyHash = new Uint8Array(32).fill(2)

describe('HKDF info of a vault', () => {
  test.each([
    ['an owner of 31 bytes', { owner: owner.subarray(1), policyHash }],
    ['a policy hash of 33 bytes', { owner, policyHash: new Uint8Array(33) }],
    ['no policy hash', { owner, policyHash: undefined as unknown as Uint8Array }],
  ])('%s is refused: its neighbour would move', (_, vault) => {
    expect(() => toVaultKeyInfo(vault)).toThrow(withCode('invalid_length'))
    expect(() => toVaultKeyIdInfo(vault)).toThrow(withCode('invalid_length'))
  })

  test('owner and policy are not interchangeable', () => {
    expect(toVaultKeyInfo({ owner, policyHash })).not.toEqual(toVaultKeyInfo({ owner: policyHash, policyHash: owner }))
  })
})

describe('the challenge of an approval', () => {
  const good = {
    vaultAddress: new Uint8Array(20).fill(3),
    policyHash,
    rule: 1,
    kind: 'transaction',
    digest: new Uint8Array(32).fill(4),
    expiresMs: 1_735_787_045_678,
  } as const

  test.each([
    { vaultAddress: new Uint8Array(20).fill(5) },
    { policyHash: new Uint8Array(32).fill(5) },
    { rule: 2 },
    { kind: 'message' } as const,
    { kind: 'typed-data' } as const,
    { digest: new Uint8Array(32).fill(5) },
    { expiresMs: good.expiresMs + 1 },
  ])('differs for other %o', (other) => {
    for (const toBytes of [computeApprovalChallenge, toAgentApprovalBytes]) {
      expect(toBytes({ ...good, ...other })).not.toEqual(toBytes(good))
    }
  })

  test.each([
    ['a vault of 32 bytes', { vaultAddress: new Uint8Array(32) }, 'invalid_length'],
    ['rule 256', { rule: 256 }, 'invalid_integer'],
    ['a digest of 31 bytes', { digest: new Uint8Array(31) }, 'invalid_length'],
    ['an authorization', { kind: 'authorization' }, 'invalid_request'],
    ['a member of every object as kind', { kind: 'toString' }, 'invalid_request'],
    ['an expiry before 1970', { expiresMs: -1 }, 'invalid_integer'],
    ['part of a millisecond', { expiresMs: 0.5 }, 'invalid_integer'],
    ['an expiry above 2^53', { expiresMs: 2 ** 53 }, 'invalid_integer'],
  ] as const)('%s is refused', (_, other, code) => {
    for (const toBytes of [computeApprovalChallenge, toAgentApprovalBytes]) {
      expect(() => toBytes({ ...good, ...other } as never)).toThrow(withCode(code))
    }
  })
})
