import { describe, expect, test } from 'vitest'
import {
  alice,
  budgeted,
  ETHER,
  full,
  limited,
  passkeys,
  payment,
  scheduled,
  spend,
  token,
  tokenTransfer,
} from '../test/policies.ts'
import { createPolicy } from './assertPolicy.ts'
import { checkPolicy } from './checkPolicy.ts'
import { describePolicy } from './describePolicy.ts'
import { describeRefusal } from './describeRefusal.ts'
import type { Policy, Rule, TransactionRule } from './policy.ts'

const toPolicy = (...rules: Rule[]): Policy => createPolicy({ ...full, log: null, rules })

describe('the summary of a policy', () => {
  test.each<[string, Policy]>([
    ['Up to 0.1 ETH at a time to three addresses; more with one passkey', limited],
    [
      'Up to 0.1 ETH at a time to three addresses; up to 0.1 ETH at a time to any address with one passkey; ten transactions each day',
      scheduled,
    ],
    ['Transfers of one token', toPolicy(tokenTransfer)],
    ['Transfers of any token with one passkey', toPolicy({ ...tokenTransfer, to: 'any', approvals: 1 })],
    ['No coins to one address, calling one function', toPolicy({ ...tokenTransfer, selectors: ['0x095ea7b3'] })],
    [
      'Up to 0.1 of the chain’s coin at a time to any address; messages with two of three passkeys; typed data of any domain with three passkeys',
      toPolicy(
        { ...payment, chainIds: 'any', to: 'any' },
        { kind: 'message', approvals: 2, approvers: 'any' },
        { kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 3, approvers: 'any' },
      ),
    ],
    [
      'Up to 0.1 ETH at a time to three addresses; up to 1.5 ETH at a time with one passkey; more with two of three passkeys',
      toPolicy(
        payment,
        { ...payment, maxValueWei: String((3n * ETHER) / 2n), approvals: 1 },
        { ...payment, maxValueWei: String(2n ** 256n - 1n), approvals: 2 },
      ),
    ],
    [
      'Up to 0.000000000000000001 POL at a time to three addresses',
      toPolicy({ ...payment, chainIds: [137], maxValueWei: '1' }),
    ],
    [
      'Up to 1 of the chain’s coin at a time to three addresses',
      toPolicy({ ...payment, chainIds: [1, 137], maxValueWei: String(ETHER) }),
    ],
  ])('%s', (summary, policy) => {
    expect(describePolicy(policy).summary).toBe(summary)
  })

  test('does not describe a stricter rule as allowing more', () => {
    const { summary } = describePolicy(toPolicy(payment, { ...payment, maxValueWei: '5', approvals: 1 }))
    expect(summary).not.toContain('more')
  })

  test('takes linear time in the number of rules', () => {
    let reads = 0
    const rules = Array.from({ length: 100 }, (_, at) => ({
      ...payment,
      maxValueWei: String(at),
      get to() {
        reads += 1
        return payment.to
      },
    }))
    describePolicy({ ...limited, rules })
    expect(reads).toBeLessThan(1_000)
  })
})

describe('the rules in sentences', () => {
  test('are in the order of the policy', () => {
    expect(describePolicy(full).rules).toMatchInlineSnapshot(`
      [
        "Transfers (0xa9059cbb) of the token 0x7070707070707070707070707070707070707070, at most 500000000 of the smallest unit at a time, to 0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1 or 0xb0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0 on Ethereum, with a fee of up to 0.01 ETH for gas, without approval.",
        "Up to 0.1 ETH at a time to 0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1, 0xb0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0 or 0xc2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2 on Ethereum, with a fee of up to 0.01 ETH for gas, without data, without approval.",
        "Typed data Mail or Permit of the domain named "Permits" of version "1" on Ethereum of contract 0x7070707070707070707070707070707070707070 or the domain named "Mail" with one passkey.",
        "Any messages with one passkey.",
        "Up to 5 of the chain’s coin at a time to any address on any chain, with a fee of up to 0.01 of the chain’s coin for gas, without data, with two of three passkeys.",
        "Any typed data of any domain with three passkeys.",
      ]
    `)
    expect(describePolicy(scheduled).rules).toHaveLength(scheduled.rules.length)
  })

  test.each<[string, string, readonly number[]]>([
    ['Local chain', '0.1 ETH', [31337]],
    ['Holesky or Hoodi', '0.1 ETH', [17000, 560048]],
    ['Chain 100', '0.1 of the chain’s coin', [100]],
  ])('a chain and its coin are called as everywhere else: %s', (chains, amount, chainIds) => {
    const policy = toPolicy({ ...payment, chainIds })
    expect(describePolicy(policy).rules.join()).toMatch(new RegExp(`^Up to ${amount} at a time to .* on ${chains}, `))
  })

  test('describe a call that is almost a token transfer word by word', () => {
    const [recipient, amount] = tokenTransfer.arguments ?? []
    if (recipient === undefined || amount === undefined) throw new Error('a transfer has two words')
    for (const change of [
      { selectors: ['0x095ea7b3'] },
      { selectors: ['0x095ea7b3', '0xa9059cbb'] },
      { words: 3 },
      { maxValueWei: '1' },
      { arguments: [amount] },
      { arguments: [recipient] },
      { arguments: [{ ...recipient, type: 'uint160', oneOf: undefined }, amount] },
      { arguments: [recipient, { ...amount, type: 'uint128' }] },
      { arguments: [recipient, { at: 1, type: 'uint256', oneOf: ['5'] }] },
    ] as Partial<TransactionRule>[]) {
      const [sentence] = describePolicy(toPolicy({ ...tokenTransfer, ...change })).rules
      expect(sentence).toContain(', calling 0x')
      expect(sentence).not.toMatch(/transfers/i)
    }
  })

  test('quote the author’s texts without invisible or right-to-left characters', () => {
    const name = 'USD\u202e\u200bC\n"end'
    const policy = toPolicy({
      kind: 'typed-data',
      domains: [{ name }],
      primaryTypes: 'any',
      approvals: 1,
      approvers: 'any',
    })
    expect(describePolicy(policy).rules).toEqual([
      'Any typed data of the domain named "USD\\u202e\\u200bC\\n\\"end" with one passkey.',
    ])
  })
})

describe('a policy with budgets', () => {
  const { summary, rules, notes } = describePolicy(budgeted)
  const all = notes.join('\n')

  test('says which payments an agent can approve, and that no session is needed', () => {
    expect(summary).toMatch(/^Payments within the budgets with one agent key; /)
    const [sentence] = rules.filter((rule) => rule.includes('within the budgets'))
    for (const words of [alice, 'coins', 'EIP-3009', 'x402', 'Ethereum', 'with one agent key, without a session']) {
      expect(sentence).toContain(words)
    }
  })

  test('lists each budget with its window, and what it does not promise', () => {
    expect(all).toContain(`at most 10000000 of the smallest unit of the token ${token} on Ethereum in each day of UTC`)
    expect(all).toContain(
      `at most 100000000 of the smallest unit of the token ${token} on Ethereum in the life of the vault`,
    )
    expect(all).toContain('at most 0.01 ETH on Ethereum in each hour of UTC')
    expect(all).toMatch(/limits of two periods can be signed within minutes/)
  })

  test('warns about a lost passkey if a rule needs all that it lists', () => {
    expect(all).toContain('no spare passkey')
    const approvers = [...budgeted.approvers, ...passkeys.map(({ approver }) => approver)].filter(
      ({ publicKey }, at, list) => list.findIndex((one) => one.publicKey === publicKey) === at,
    )
    const people = approvers.flatMap(({ type }, at) => (type === 'passkey' ? at : []))
    const key = approvers.findIndex(({ type }) => type === 'key')
    const given = [
      { ...spend, approvers: [key] },
      { kind: 'message', approvals: 1, approvers: people },
    ] as const
    expect(describePolicy(createPolicy({ ...budgeted, approvers, rules: given })).notes.join()).not.toContain(
      'no spare',
    )
    const one = { kind: 'message', approvals: 1, approvers: people.slice(0, 1) } as const
    expect(describePolicy(createPolicy({ ...budgeted, approvers, rules: [...given, one] })).notes.join()).toContain(
      'no spare',
    )
  })

  test.each([
    [[1], false],
    [[8453], true],
  ])('warns about data fees that no budget counts: chains %j', (chainIds, isTold) => {
    const budgets = [{ chainId: chainIds[0] as number, token: null, limit: '1', periodS: 0 }]
    const words = describePolicy(createPolicy({ ...budgeted, budgets, rules: [{ ...spend, chainIds }] })).notes.join()
    expect(words.includes('data fee, which no budget counts')).toBe(isTold)
  })
})

describe('the notes before a vault is created', () => {
  test('always say that the rules never change', () => {
    for (const policy of [limited, full, scheduled]) expect(describePolicy(policy).notes[0]).toContain('never change')
  })

  test.each<[string, Policy, string]>([
    ['a limit for each payment bounds no total', limited, 'does not limit the total'],
    ['a schedule is a rate', scheduled, 'it is a rate, not a daily limit'],
    ['a period can be used up with small payments', scheduled, 'small payments'],
    ['the time can end', scheduled, 'locked permanently'],
    ['the log can end', full, 'two of three witnesses'],
    [
      'tokens are not bounded by the coin',
      toPolicy({ ...tokenTransfer, arguments: undefined }),
      'any amount of a token',
    ],
    ['whose page is trusted', limited, 'vault.example'],
    ['no spare passkey', scheduled, 'no spare passkey'],
  ])('%s', (_, policy, words) => {
    expect(describePolicy(policy).notes.join('\n')).toContain(words)
  })

  test.each([
    ['a limit on chains that take nothing but gas', { chainIds: [1, 42161] }, false],
    ['a limit on a rollup of the OP stack', { chainIds: [1, 84532] }, true],
    ['a limit on a chain that is not known', { chainIds: [7777] }, true],
    ['a limit on any chain', { chainIds: 'any' }, true],
    ['no limit', { chainIds: 'any', maxFeeWei: String(2n ** 256n - 1n) }, false],
  ] as const)('warns about a data fee above the fee limit: %s', (_, change, isTold) => {
    const notes = describePolicy(toPolicy({ ...payment, ...change })).notes.join()
    expect(notes.includes('data fee, which no rule can limit')).toBe(isTold)
  })

  test('mention passkeys, tokens, time or a log only if the policy has them', () => {
    const notes = describePolicy(createPolicy({ version: 1, log: null, approvers: [], rules: [payment] })).notes.join(
      '\n',
    )
    expect(notes).not.toMatch(/passkey|token|source|witness/)
  })

  test('show a start outside the calendar as a number', () => {
    const schedule = { startsAtMs: Number.MAX_SAFE_INTEGER, everyS: 90, count: 1 }
    const { summary, notes } = describePolicy(createPolicy({ ...scheduled, schedule }))
    expect(summary).toContain('one transaction each 90 seconds')
    expect(notes.join('\n')).toContain(`${Number.MAX_SAFE_INTEGER} ms after 1970`)
  })
})

describe('the reasons of a refusal', () => {
  const txMetadata = {
    chainId: 1,
    nonce: 0,
    to: alice,
    value: '0',
    data: '0x',
    gas: '21000',
    maxFeePerGas: '1',
    maxPriorityFeePerGas: '0',
  } as const
  const explain = (policy: Policy, changes: object, rule?: number) => {
    const verdict = checkPolicy(policy, { kind: 'transaction', txMetadata: { ...txMetadata, ...changes } }, rule)
    return verdict.allowed ? [] : describeRefusal(policy, verdict)
  }
  const only = toPolicy(payment)

  test.each<[string, Policy, object, string[]]>([
    ['the amount', only, { value: String(ETHER) }, ['The amount is above the limit of 0.1 ETH.']],
    ['the fee', only, { maxFeePerGas: String(ETHER) }, ['The fee can be above the limit of 0.01 ETH.']],
    [
      'the amount, of two rules',
      toPolicy(payment, { ...payment, maxValueWei: String(5n * ETHER), approvals: 1 }),
      { value: String(50n * ETHER) },
      ['The amount is above the limit of 5 ETH with one passkey.'],
    ],
    ['the chain', only, { chainId: 10 }, ['The chain is not Ethereum.']],
    [
      'the recipient and data',
      only,
      { to: token, data: '0x00' },
      ['The recipient is not on the list.', 'Only payments without data are allowed.'],
    ],
    ['the call', toPolicy(tokenTransfer), { to: token, data: '0x00' }, ['The data does not have the allowed length.']],
    [
      'an argument',
      toPolicy(tokenTransfer),
      { to: token, data: `0xa9059cbb${'00'.repeat(64)}` },
      ['Word 1 of the call is not one of the allowed values.'],
    ],
    [
      'the kind',
      toPolicy({ kind: 'message', approvals: 1, approvers: 'any' }),
      {},
      ['The rule is for another kind of signature.'],
    ],
    ['the schedule', scheduled, {}, ['The vault has a schedule, but the request has no sample for the time.']],
    [
      'a request that cannot be read',
      only,
      { nonce: -1 },
      ['The request is malformed, or is of a kind that a vault does not sign.'],
    ],
  ])('%s', (_, policy, changes, sentences) => {
    expect(explain(policy, changes)).toEqual(sentences)
  })

  test('an unknown rule', () => {
    expect(explain(only, {}, 1)).toEqual(['The vault has no rule with this number.'])
  })
})
