import { quicknet } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { full, limited, payment, scheduled, toKey } from '../../../../packages/policy/test/policies.ts'
import { readTimeSources } from './policySources.ts'
import { describeLocks } from './VaultRules.tsx'

describe('what can lock the funds', () => {
  const tell = (policy: typeof full, page = { chainId: 1, chainName: 'Home' }) => describeLocks(policy, page).join(' ')

  test('lists tokens and other chains if no rule allows them', () => {
    expect(tell(limited)).toMatch(/Tokens .* can never leave .* chain other than Home/)
    expect(tell(full)).not.toMatch(/Tokens|chain other/)
  })

  test('names the chains of the rules, not of the page', () => {
    const policy = { ...limited, rules: [{ ...payment, chainIds: [10, 8453] }] }
    expect(tell(policy)).toMatch(/chain other than OP Mainnet or Base can/)
    expect(tell(policy)).not.toMatch(/Home/)
  })

  test('lists all coins if no rule allows transactions', () => {
    const rules = [{ kind: 'message', approvals: 1, approvers: 'any' }] as const
    expect(tell({ ...limited, rules })).toMatch(/Coins sent to this vault can never leave it/)
  })

  test('does not list tokens if typed data could permit transfers', () => {
    const permit = { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 1, approvers: 'any' } as const
    expect(tell({ ...limited, rules: [payment, permit] })).not.toMatch(/Tokens/)
  })

  test('lists lost passkeys if there are any, and fees if nothing can override their limit', () => {
    expect(tell(scheduled)).toMatch(/lose too many passkeys/)
    expect(tell(scheduled)).not.toMatch(/network fee/)
    const free = tell({ ...limited, approvers: [], rules: [payment] })
    expect(free).toMatch(/network fee/)
    expect(free).not.toMatch(/passkeys/)
  })

  test('lists the schedule, which also delays moving funds', () => {
    expect(tell(scheduled)).toMatch(/second vault also waits/)
    expect(tell(full)).not.toMatch(/second vault/)
  })

  test('always lists the account, the rules and the root secret', () => {
    for (const policy of [limited, full, scheduled])
      expect(tell(policy)).toMatch(
        /lose that account.*passkey can’t replace the account.*Keep the file too.*root secret/,
      )
  })
})

describe('time sources of a schedule', () => {
  test('are the manifest’s sources and a beacon', () => {
    const trust = { entropyKeys: [toKey(1), toKey(2)] }
    expect(readTimeSources({ trust })).toEqual([
      { kind: 'satellite', key: toKey(1) },
      { kind: 'satellite', key: toKey(2) },
      { kind: 'drand', ...quicknet },
    ])
  })

  test.each([
    ['no manifest', undefined],
    ['a text', 'trust me'],
    ['no keys', {}],
    ['an empty list', { entropyKeys: [] }],
    ['keys of another kind', { entropyKeys: ['00', 7, null, `0x${'11'.repeat(32)}`] }],
  ])('are empty with %s, because the service may never use the beacon', (_, trust) => {
    expect(readTimeSources({ trust })).toEqual([])
  })
})
