import { checkPolicy, describePolicy } from '@countersign/policy'
import type { Hex } from '@countersign/sdk'
import { parseEther } from 'viem'
import { describe, expect, test } from 'vitest'
import { alice, beacon, bob, passkeys, satellite, toKey, token } from '../../../../packages/policy/test/policies.ts'
import { toTransferData } from '../token/erc20.ts'
import { readPolicyLog } from './policySources.ts'
import { type Terms, toPolicy } from './template.ts'

const startsAtMs = Date.UTC(2027, 0, 1)
const context = {
  chainId: 1,
  startsAtMs,
  log: null,
  time: [satellite, beacon],
  approvers: passkeys.slice(0, 2).map(({ approver }) => approver),
}
const base: Terms = {
  template: 'approval',
  limitWei: parseEther('0.1'),
  feeWei: parseEther('0.01'),
  recipients: null,
  approvals: 1,
  agent: null,
}
const limit: Terms = { ...base, template: 'limit', approvals: 0 }
const list: Terms = { ...base, template: 'list', limitWei: null, recipients: [alice, bob], approvals: 0 }
const agent: Terms = { ...base, template: 'agent', agent: { everyS: 86_400, count: 2, refuge: bob } }
const approved: Terms = { ...list, approvals: 2, limitWei: parseEther('1') }

type Payment = {
  to?: Hex
  value?: string
  nonce?: number
  chainId?: number
  gwei?: number
  data?: Hex
  timeMs?: number
}

/** Returns the number of approvals that a payment needs, or undefined if it's rejected. */
function ask(terms: Terms, payment: Payment): number | undefined {
  const { to = alice, value = '0.1', nonce = 0, chainId = 1, gwei = 1, data = '0x', timeMs = startsAtMs } = payment
  const approvers = terms.template === 'limit' || terms === list ? [] : context.approvers
  const verdict = checkPolicy(toPolicy(terms, { ...context, approvers }), {
    kind: 'transaction',
    txMetadata: {
      chainId,
      nonce,
      to,
      data,
      value: String(parseEther(value)),
      gas: '21000',
      maxFeePerGas: String(BigInt(gwei) * 10n ** 9n),
      maxPriorityFeePerGas: '0',
    },
    ...(terms.agent === null ? {} : { sample: { source: satellite, timeMs } }),
  })
  return verdict.allowed ? verdict.approvals : undefined
}

const transferTo = (recipient: Hex): Payment => ({
  to: token,
  value: '0',
  data: toTransferData({ recipient, amount: 5n }),
})

describe('approval above an amount', () => {
  test.each<[string, Payment, number | undefined]>([
    ['up to the limit', {}, 0],
    ['one wei more', { value: '0.100000000000000001' }, 1],
    ['a fee above its limit', { gwei: 1_000_000 }, 1],
    ['on another chain', { chainId: 10 }, 1],
    ['a transfer of a token', transferTo(alice), 1],
    ['another call', { to: token, value: '0', data: '0x095ea7b3' }, undefined],
    ['a call that pays', { ...transferTo(alice), value: '0.05' }, undefined],
  ])('evaluates a payment: %s', (_, payment, approvals) => {
    expect(ask(base, payment)).toBe(approvals)
  })

  test('is described in words', () => {
    expect(describePolicy(toPolicy(base, context)).summary).toMatch(/^Up to 0\.1 ETH at a time to any address; /)
  })
})

describe('limit per payment', () => {
  test.each<[string, Payment, number | undefined]>([
    ['up to the limit', {}, 0],
    ['one wei more', { value: '0.100000000000000001' }, undefined],
    ['a fee above its limit', { gwei: 1_000_000 }, undefined],
    ['on another chain', { chainId: 10 }, undefined],
    ['a transfer of a token', transferTo(alice), undefined],
  ])('evaluates a payment: %s', (_, payment, approvals) => {
    expect(ask(limit, payment)).toBe(approvals)
  })
})

describe('list of addresses', () => {
  test.each<[string, Terms, Payment, number | undefined]>([
    ['any amount to one of them', list, { value: '5000' }, 0],
    ['to another', list, { to: token }, undefined],
    ['with passkeys, to one of them', approved, { value: '1' }, 2],
    ['with passkeys, above the limit', approved, { value: '1.1' }, undefined],
    ['with passkeys, to another', approved, { to: token }, undefined],
    ['with passkeys, a token to one of them', approved, transferTo(bob), 2],
    ['with passkeys, a token to another', approved, transferTo(token), undefined],
  ])('evaluates a payment: %s', (_, terms, payment, approvals) => {
    expect(ask(terms, payment)).toBe(approvals)
  })
})

describe('agent with a schedule', () => {
  test.each<[string, Payment, number | undefined]>([
    ['the first payments of the first period', { nonce: 1 }, 0],
    ['before it starts', { timeMs: startsAtMs - 1 }, undefined],
    ['one too many', { nonce: 2 }, undefined],
    ['the same a period later', { nonce: 2, timeMs: startsAtMs + 86_400_000 }, 0],
    ['everything to the second vault', { to: bob, value: '5000' }, 1],
    ['everything to another address', { value: '5000' }, undefined],
    ['a token to the second vault', transferTo(bob), 1],
    ['a token to another address', transferTo(alice), undefined],
    ['everything to the second vault before the schedule allows it', { to: bob, value: '5000', nonce: 2 }, undefined],
  ])('evaluates a payment: %s', (_, payment, approvals) => {
    expect(ask(agent, payment)).toBe(approvals)
  })

  test('also allows payments to the second vault if it has a list', () => {
    const listed: Terms = { ...agent, recipients: [alice] }
    expect([ask(listed, { to: bob }), ask(listed, { to: alice }), ask(listed, { to: token })]).toEqual([
      0,
      0,
      undefined,
    ])
  })

  test('names every time source', () => {
    expect(toPolicy(agent, context).time).toHaveLength(2)
  })
})

test('lists an address once, in any notation', () => {
  const repeated: Terms = { ...list, recipients: [alice, alice.toUpperCase().replace('0X', '0x') as Hex] }
  expect(toPolicy(repeated, { ...context, approvers: [] }).rules[0]).toMatchObject({ to: [alice] })
})

describe('the service’s log', () => {
  const witnesses = [1, 2, 3].map(toKey)
  const policiesWith = (trust: unknown) =>
    [base, limit, list, agent].map((terms) => {
      const approvers = terms.approvals === 0 ? [] : context.approvers
      return toPolicy(terms, { ...context, approvers, log: readPolicyLog({ trust }) }).log
    })

  test('is required by every template if it has three witnesses', () => {
    const log = { witnesses: witnesses.toSorted(), quorum: 2 }
    expect(policiesWith({ log: { witnesses, quorum: 2 } })).toEqual([log, log, log, log])
  })

  test.each([
    ['no manifest', undefined],
    ['a manifest without a log', {}],
    ['two witnesses', { log: { witnesses: witnesses.slice(1), quorum: 2 } }],
    ['no witnesses', { log: { quorum: 2 } }],
  ])('is not required with %s', (_, trust) => {
    expect(policiesWith(trust)).toEqual([null, null, null, null])
  })

  test.each([
    ['a quorum of a minority', { witnesses, quorum: 1 }],
    ['no quorum', { witnesses }],
    ['a witness twice', { witnesses: [...witnesses.slice(1), witnesses[1]], quorum: 2 }],
    ['a witness that is not a valid key', { witnesses: [...witnesses, 'ff'.repeat(32)], quorum: 3 }],
  ])('is rejected with %s', (_, log) => {
    expect(() => policiesWith({ log })).toThrow(expect.objectContaining({ code: 'vault_policy_malformed' }))
  })
})
