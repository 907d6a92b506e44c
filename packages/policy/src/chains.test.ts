import { expect, test } from 'vitest'
import { payment } from '../test/policies.ts'
import { canSignOnChains } from './chains.ts'
import type { DomainRule, Rule } from './policy.ts'

const on = (chainIds: 'any' | number[]): Rule => ({ ...payment, chainIds })
const of = (domains: 'any' | DomainRule[]): Rule => ({
  kind: 'typed-data',
  domains,
  primaryTypes: 'any',
  approvals: 1,
  approvers: 'any',
})

test.each<[string, Rule, boolean]>([
  ['payments on any chain', on('any'), true],
  ['payments on this chain and another', on([1, 8453]), true],
  ['payments on other chains', on([1, 10]), false],
  ['typed data of any domain', of('any'), true],
  ['typed data of this chain and another', of([{ chainId: 1 }, { chainId: 8453 }]), true],
  ['typed data of another chain', of([{ chainId: 1 }]), false],
  ['typed data of no chain, or another', of([{ name: 'Mail' }, { chainId: 1 }]), true],
  ['messages', { kind: 'message', approvals: 1, approvers: 'any' }, true],
])('a service for one chain: %s', (_, rule, isSigned) => {
  expect(canSignOnChains(rule, { chainIds: [8453] })).toBe(isSigned)
  expect(canSignOnChains(rule, { chainIds: undefined })).toBe(true)
})

test('rejects typed data without a chain if a chain is required', () => {
  const chains = { chainIds: [8453], isChainRequired: true }
  expect(canSignOnChains(of([{ name: 'Mail' }]), chains)).toBe(false)
  expect(canSignOnChains(of([{ name: 'Mail' }, { chainId: 8453 }]), chains)).toBe(true)
  expect(canSignOnChains(of('any'), chains)).toBe(true)
  expect(canSignOnChains({ kind: 'message', approvals: 1, approvers: 'any' }, chains)).toBe(true)
})
