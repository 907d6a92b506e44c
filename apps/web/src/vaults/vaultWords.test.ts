import { quicknet } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { full, limited, payment, scheduled, toKey } from '../../../../packages/policy/test/policies.ts'
import { readTimeSources } from './policySources.ts'
import { describeLocks } from './RulesInWords.tsx'

describe('what locks the funds', () => {
  const tell = (policy: typeof full, page = { chainId: 1, chainName: 'Home' }) => describeLocks(policy, page).join(' ')

  test('tokens and other chains, where no rule is for them', () => {
    expect(tell(limited)).toMatch(/Tokens .* can never leave .* chain other than Home/)
    expect(tell(full)).not.toMatch(/Tokens|chain other/)
  })

  test('the chains are those of the rules, not that of the page', () => {
    const policy = { ...limited, rules: [{ ...payment, chainIds: [10, 8453] }] }
    expect(tell(policy)).toMatch(/chain other than OP Mainnet or Base can/)
    expect(tell(policy)).not.toMatch(/Home/)
  })

  test('all coins, where no rule is for transactions', () => {
    const rules = [{ kind: 'message', approvals: 1 }] as const
    expect(tell({ ...limited, rules })).toMatch(/Coins sent to this vault can never leave it/)
  })

  test('no tokens, where typed data can permit somebody to take them', () => {
    const permit = { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 1 } as const
    expect(tell({ ...limited, rules: [payment, permit] })).not.toMatch(/Tokens/)
  })

  test('lost passkeys, where there are any; fees, where none can overrule their limit', () => {
    expect(tell(scheduled)).toMatch(/lose too many passkeys/)
    expect(tell(scheduled)).not.toMatch(/network fee/)
    const free = tell({ ...limited, approvers: [], rules: [payment] })
    expect(free).toMatch(/network fee/)
    expect(free).not.toMatch(/passkeys/)
  })

  test('a schedule, which holds for the refuge too', () => {
    expect(tell(scheduled)).toMatch(/second vault also waits/)
    expect(tell(full)).not.toMatch(/second vault/)
  })

  test('the account, the rules and the root secret, always', () => {
    for (const policy of [limited, full, scheduled])
      expect(tell(policy)).toMatch(
        /lose that account.*passkey can’t replace the account.*Keep the file too.*root secret/,
      )
  })
})

describe('what tells the time to a schedule', () => {
  test('the sources of the manifest, and a beacon as a spare', () => {
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
  ])('nothing, with %s: the beacon alone may never be used', (_, trust) => {
    expect(readTimeSources({ trust })).toEqual([])
  })
})
