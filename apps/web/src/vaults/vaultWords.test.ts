import type { Budget } from '@countersign/policy'
import { describe, expect, test } from 'vitest'
import { budgeted, full, limited, payment, scheduled, toKey, token } from '../../../../packages/policy/test/policies.ts'
import { describeAmount, describeLimit, describeWitnesses, toUtc } from './budgetWords.ts'
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

describe('the words of a budget', () => {
  const [daily, forLife, coin] = budgeted.budgets as [Budget, Budget, Budget]
  const tokens = [{ chainId: 1, address: token, symbol: 'USDC', decimals: 6, name: 'USD Coin' }]

  test.each<[string, Budget, string]>([
    ['of a known token', daily, '10 USDC per day'],
    ['for the vault’s life', forLife, '100 USDC in total'],
    ['of coins', coin, '0.01 ETH per hour'],
    ['of two weeks', { ...daily, periodS: 1_209_600 }, '10 USDC per 2 weeks'],
    ['of an odd period', { ...daily, periodS: 3_601 }, '10 USDC per 3601 seconds'],
    [
      'of the same token on another chain',
      { ...daily, chainId: 10 },
      `10000000 units of the token 0x707070…707070 per day`,
    ],
  ])('name asset and period: %s', (_, budget, expected) => {
    expect(describeLimit(budget, tokens)).toBe(expected)
  })

  test('never round an amount up', () => {
    expect(describeAmount(9_999_999n, daily, tokens)).toBe('9.999999 USDC')
    expect(describeAmount(1n, coin, tokens)).toBe('< 0.000001 ETH')
  })

  test('give the end of a period in UTC', () => {
    expect(toUtc(Date.UTC(2027, 0, 2) / 1000)).toMatch(/^2 January 2027 at 00:00 UTC$/)
  })

  test.each([
    [3, 2, /none of the 3/],
    [4, 3, /even if one of the 4 witnesses lies/],
    [5, 5, /even if 4 of the 5 witnesses lie\./],
  ])('say how many witnesses may lie: %i, quorum %i', (count, quorum, expected) => {
    const witnesses = Array.from({ length: count }, (_, index) => toKey(index + 1))
    expect(describeWitnesses({ witnesses, quorum })).toMatch(expected)
  })
})
