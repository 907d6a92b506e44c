import { checkPolicy, describePolicy, type Policy, type PolicyRequest } from '@countersign/policy'
import type { Hex } from '@countersign/sdk'
import { parseEther } from 'viem'
import { describe, expect, test } from 'vitest'
import { agent as agentKey, alice, bob, passkeys, toKey, token } from '../../../../packages/policy/test/policies.ts'
import { toTransferData } from '../token/erc20.ts'
import { readPolicyLog } from './readPolicyLog.ts'
import { type Terms, toPolicy } from './template.ts'

const nowMs = Date.UTC(2027, 0, 1)
const vaultAddress: Hex = `0x${'0a'.repeat(20)}`
const context = {
  chainId: 1,
  log: null,
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
const agent: Terms = {
  ...base,
  template: 'budget',
  limitWei: null,
  agent: { token, limit: 10_000_000n, periodS: 86_400, publicKey: agentKey.approver.publicKey },
}
const approved: Terms = { ...list, approvals: 2, limitWei: parseEther('1') }

type Payment = {
  to?: Hex
  value?: string
  nonce?: number
  chainId?: number
  gwei?: number
  data?: Hex
}

/** Returns the number of approvals that a payment needs, or undefined if it's rejected. */
function ask(terms: Terms, payment: Payment): number | undefined {
  const { to = alice, value = '0.1', nonce = 0, chainId = 1, gwei = 1, data = '0x' } = payment
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

describe('an agent with a budget', () => {
  const log = { witnesses: [1, 2, 3, 4, 5].map(toKey), quorum: 3 }
  const counting = { ...context, log, origin: 'log.example/1' }
  const isByAgent = (policy: Policy, rule: number) => policy.rules[rule]?.kind === 'spend'

  /** Who approves a request: the agent, passkeys, or nobody. */
  function ask(terms: Terms, request: PolicyRequest) {
    const policy = toPolicy(terms, counting)
    const verdicts = policy.rules.map((_, rule) => checkPolicy(policy, request, rule, { vaultAddress, nowMs }))
    const allowed = verdicts.flatMap((verdict) => (verdict.allowed ? verdict : []))
    return allowed.map(({ rule, approvals }) => (isByAgent(policy, rule) ? 'agent' : approvals))
  }

  const authorize = (to: Hex, verifyingContract = token): PolicyRequest => ({
    kind: 'typed-data',
    content: {
      domain: { name: 'USD Coin', version: '2', chainId: 1, verifyingContract },
      types: {
        TransferWithAuthorization: [
          { name: 'from', type: 'address' },
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'validAfter', type: 'uint256' },
          { name: 'validBefore', type: 'uint256' },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'TransferWithAuthorization',
      message: {
        from: vaultAddress,
        to,
        value: '5',
        validAfter: '0',
        validBefore: String(nowMs / 1000 + 60),
        nonce: `0x${'00'.repeat(32)}`,
      },
    },
  })
  const pay = (to: Hex, data: Hex = '0x', value = '1'): PolicyRequest => ({
    kind: 'transaction',
    txMetadata: {
      chainId: 1,
      nonce: 0,
      to,
      data,
      value,
      gas: '21000',
      maxFeePerGas: '1',
      maxPriorityFeePerGas: '0',
    },
  })
  const toApproveData = (spender: string): Hex => `0x095ea7b3${spender.padStart(64, '0')}${'f'.repeat(64)}`
  const permit2 = '000000000022d473030f116ddee9f6b43ac78ba3'
  const coin: Terms = { ...agent, agent: { ...(agent.agent as NonNullable<Terms['agent']>), token: null } }
  const listed: Terms = { ...agent, recipients: [bob] }

  test.each<[string, Terms, PolicyRequest, (string | number)[]]>([
    ['a payment of the token', agent, authorize(alice), ['agent', 1]],
    ['a payment of another token', agent, authorize(alice, bob), [1]],
    ['a payment to an address on the list', listed, authorize(bob), ['agent', 1]],
    ['a payment to another address', listed, authorize(alice), [1]],
    ['coins, if the budget is of a token', agent, pay(alice), [1]],
    [
      'a transfer of the token, which costs coins',
      agent,
      pay(token, toTransferData({ recipient: alice, amount: 5n }), '0'),
      [1],
    ],
    ['an approval of Permit2', agent, pay(token, toApproveData(permit2), '0'), [1]],
    ['an approval of anyone else', agent, pay(token, toApproveData('a1'.repeat(20)), '0'), []],
    ['coins, if the budget is of coins', coin, pay(alice), ['agent', 1]],
    ['the token, if the budget is of coins', coin, authorize(alice), [1]],
    ['a message', agent, { kind: 'message', content: { message: '0x68656c6c6f' } }, [1]],
  ])('needs the agent or passkeys: %s', (_, terms, request, expected) => {
    expect(ask(terms, request).toSorted()).toEqual(expected.toSorted())
  })

  test('needs no session for the agent, and the passkeys that were chosen for the rest', () => {
    const { rules, approvers } = toPolicy({ ...agent, approvals: 2 }, counting)
    const at = approvers.findIndex(({ type }) => type === 'key')
    expect(rules.filter(({ kind }) => kind === 'spend')).toMatchObject([
      { session: false, approvals: 1, approvers: [at] },
    ])
    for (const rule of rules.filter(({ kind }) => kind !== 'spend')) {
      expect(rule).toMatchObject({ approvals: 2, approvers: [0, 1, 2].filter((index) => index !== at) })
    }
  })

  test.each([
    [3, 2, 2],
    [4, 3, 3],
    [5, 3, 4],
    [5, 5, 5],
    [7, 4, 5],
  ])('lets one witness lie if there are four or more: %i witnesses, quorum %i', (count, quorum, expected) => {
    const given = { witnesses: Array.from({ length: count }, (_, index) => toKey(index + 1)), quorum }
    expect(toPolicy(agent, { ...counting, log: given }).log).toMatchObject({
      quorum: expected,
      origin: 'log.example/1',
    })
  })

  test.each([
    ['without a log', { log: null }],
    ['without the origin of a log', { origin: undefined }],
  ])('is rejected %s', (_, change) => {
    expect(() => toPolicy(agent, { ...counting, ...change })).toThrow(
      expect.objectContaining({ code: 'vault_policy_malformed' }),
    )
  })

  test('is rejected with a key that is not valid', () => {
    for (const publicKey of ['ff'.repeat(32), '00']) {
      const terms = { ...agent, agent: { ...(agent.agent as NonNullable<Terms['agent']>), publicKey } }
      expect(() => toPolicy(terms, counting)).toThrow(expect.objectContaining({ code: 'vault_policy_malformed' }))
    }
  })
})

test('lists an address once, in any notation', () => {
  const repeated: Terms = { ...list, recipients: [alice, alice.toUpperCase().replace('0X', '0x') as Hex] }
  expect(toPolicy(repeated, { ...context, approvers: [] }).rules[0]).toMatchObject({ to: [alice] })
})

describe('the service’s log', () => {
  const witnesses = [1, 2, 3].map(toKey)
  const policiesWith = (trust: unknown) =>
    [base, limit, list].map((terms) => {
      const approvers = terms.approvals === 0 ? [] : context.approvers
      return toPolicy(terms, { ...context, approvers, log: readPolicyLog({ trust }) }).log
    })

  test('is required by every template if it has three witnesses', () => {
    const log = { witnesses: witnesses.toSorted(), quorum: 2 }
    expect(policiesWith({ log: { witnesses, quorum: 2 } })).toEqual([log, log, log])
  })

  test.each([
    ['no manifest', undefined],
    ['a manifest without a log', {}],
    ['two witnesses', { log: { witnesses: witnesses.slice(1), quorum: 2 } }],
    ['no witnesses', { log: { quorum: 2 } }],
  ])('is not required with %s', (_, trust) => {
    expect(policiesWith(trust)).toEqual([null, null, null])
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
