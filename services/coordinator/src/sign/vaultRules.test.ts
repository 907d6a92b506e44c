import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import { type EntropySetting, quicknet, toHex } from '@countersign/protocol'
import { createTx, toDigest } from '@countersign/testing/stack'
import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../test/ports.ts'
import { createVaultRules } from './vaultRules.ts'

const address = `0x${'5a'.repeat(20)}` as const
const NOW = Date.parse('2026-06-15T12:00:00.000Z')
const payment = {
  kind: 'transaction',
  chainIds: 'any',
  to: 'any',
  maxFeeWei: '100000',
  approvals: 0,
  approvers: 'any',
} as const

describe('rules checked before a sample is used', () => {
  const clock = createFakeClock(NOW)
  const satellite = {
    kind: 'satellite',
    key: '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11',
  } as const
  const scheduled = createPolicy({
    version: 1,
    time: [{ kind: 'drand', ...quicknet }, satellite],
    log: null,
    approvers: [],
    schedule: { startsAtMs: NOW, everyS: 3600, count: 1 },
    rules: [{ ...payment, maxValueWei: '1' }],
  })
  const text = Buffer.from(toPolicyBytes(scheduled)).toString()
  const other = { kind: 'satellite', key: '5a'.repeat(32) } as const
  const rules = createVaultRules({ clock, entropySources: [other, satellite] })
  const ask =
    (nonce: number, by = rules) =>
    () => {
      const txMetadata = createTx(nonce)
      const content = { kind: 'transaction', digest: toDigest(txMetadata), txMetadata } as const
      const policy = { hash: toHex(hashPolicy(scheduled)), text }
      by.assertAllowed({ address, vault: { policy, rules: by.read(policy) }, content })
    }

  test('checks a schedule with the latest possible sample', () => {
    expect(ask(0)).not.toThrow()
    expect(ask(1)).toThrow(expect.objectContaining({ code: 'policy_refused' }))
    clock.advance(3_595_000)
    expect(ask(1)).not.toThrow()
    expect(ask(2)).toThrow(expect.objectContaining({ code: 'policy_refused' }))
  })

  test.each<[string, EntropySetting[]]>([
    ['another satellite', [other]],
    ['a source that does not sign', [{ kind: 'unsigned' }]],
  ])('a schedule is not due with samples only of %s', (_, entropySources) => {
    const details = expect.stringContaining('does not name the source of the sample')
    expect(ask(0, createVaultRules({ clock, entropySources }))).toThrow(
      expect.objectContaining({ code: 'policy_refused', details }),
    )
  })

  test('without a vault, and for an address, there are no rules', () => {
    const content = { kind: 'address', digest: `0x${'00'.repeat(32)}`, owner: '' } as const
    expect(() => rules.assertAllowed({ address, content })).not.toThrow()
    const vault = { policy: { hash: toHex(hashPolicy(scheduled)), text }, rules: scheduled }
    expect(() => rules.assertAllowed({ address, content, vault })).not.toThrow()
  })

  test('parses a policy once for all requests of its vault', () => {
    const policy = { hash: toHex(hashPolicy(scheduled)), text }
    expect(rules.read(policy)).toEqual(scheduled)
    expect(rules.read({ ...policy })).toBe(rules.read(policy))
  })
})
