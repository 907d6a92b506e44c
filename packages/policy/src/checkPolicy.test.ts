import type { Hex, TxMetadata, TypedData } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import {
  alice,
  beacon,
  bob,
  budgeted,
  ETHER,
  full,
  limited,
  payment,
  satellite,
  scheduled,
  spend,
  toKey,
  token,
  tokenTransfer,
} from '../test/policies.ts'
import { createPolicy } from './assertPolicy.ts'
import { checkPolicy, type PolicyRequest } from './checkPolicy.ts'
import type { Policy, Rule, TransactionRule } from './policy.ts'
import { canTellTime } from './schedule.ts'

const txMetadata: TxMetadata = {
  chainId: 1,
  nonce: 7,
  to: alice,
  value: String(ETHER / 10n),
  data: '0x',
  gas: '21000',
  maxFeePerGas: '30000000000',
  maxPriorityFeePerGas: '1',
}
const toTransaction = (changes: Partial<TxMetadata> = {}): PolicyRequest => ({
  kind: 'transaction',
  txMetadata: { ...txMetadata, ...changes },
})
const toPolicy = (...rules: Rule[]): Policy => createPolicy({ ...full, log: null, rules })
const only = toPolicy(payment)
/** Of the nearest rule. */
function codes(policy: Policy, request: unknown): string[] {
  const verdict = checkPolicy(policy, request as PolicyRequest)
  if (verdict.allowed) return []
  const nearest = verdict.rules.find(({ rule }) => rule === verdict.nearest)
  return [...verdict.reasons, ...(nearest?.reasons ?? []).map(({ code }) => code)]
}

describe('a payment', () => {
  test('is allowed up to the limits, to the wei', () => {
    const maxFeePerGas = String(ETHER / 100n / 21_000n)
    expect(checkPolicy(only, toTransaction({ maxFeePerGas }))).toEqual({
      allowed: true,
      rule: 0,
      approvals: 0,
      log: null,
    })
    expect(checkPolicy(only, toTransaction({ gas: '1', maxFeePerGas: String(ETHER / 100n) }))).toMatchObject({
      allowed: true,
    })
  })

  test.each<[string, Partial<TxMetadata>, string]>([
    ['one wei more', { value: String(ETHER / 10n + 1n) }, 'value_above_max'],
    ['all that a word holds', { value: String(2n ** 256n - 1n) }, 'value_above_max'],
    ['one wei more of fee', { gas: '1', maxFeePerGas: String(ETHER / 100n + 1n) }, 'fee_above_max'],
    ['a fee beyond 2^256', { gas: String(2n ** 64n - 1n), maxFeePerGas: String(2n ** 256n - 1n) }, 'fee_above_max'],
    ['another chain', { chainId: 10 }, 'chain_not_allowed'],
    ['another recipient', { to: token }, 'recipient_not_allowed'],
    ['the zero address', { to: `0x${'00'.repeat(20)}` }, 'recipient_not_allowed'],
    ['one byte of data', { data: '0x00' }, 'data_not_empty'],
    ['a call', { data: '0xa9059cbb' }, 'data_not_empty'],
  ])('refused: %s', (_, changes, code) => {
    expect(codes(only, toTransaction(changes))).toEqual([code])
  })

  test('accepts an address in either case', () => {
    expect(checkPolicy(only, toTransaction({ to: alice.toUpperCase().replace('0X', '0x') as Hex }))).toMatchObject({
      allowed: true,
    })
  })

  test('"any" allows everything', () => {
    const policy = toPolicy({ ...payment, chainIds: 'any', to: 'any' })
    expect(checkPolicy(policy, toTransaction({ chainId: 424242, to: token }))).toMatchObject({ allowed: true })
    // A list isn't "any" just because its text contains the letters.
    expect(codes(toPolicy({ ...payment, chainIds: [424_242] }), toTransaction())).toEqual(['chain_not_allowed'])
  })

  test('reports all reasons of a rule', () => {
    const reasons = codes(only, toTransaction({ chainId: 10, to: token, value: String(ETHER), data: '0x00' }))
    expect(reasons).toEqual(['chain_not_allowed', 'recipient_not_allowed', 'value_above_max', 'data_not_empty'])
  })
})

describe('several rules', () => {
  test('the matching rule with the fewest approvals counts, in any position', () => {
    for (const value of ['0', String(ETHER / 10n)]) {
      expect(checkPolicy(limited, toTransaction({ value }))).toMatchObject({ allowed: true, approvals: 0 })
    }
    const above = checkPolicy(limited, toTransaction({ value: String(ETHER / 10n + 1n) }))
    expect(above).toMatchObject({ allowed: true, approvals: 1 })
    expect(above.allowed && limited.rules[above.rule]?.approvals).toBe(1)
  })

  test('with a rule, checks no other one', () => {
    const policy = toPolicy({ ...payment, to: [alice] }, { ...payment, to: [bob] })
    const own = policy.rules.findIndex((rule) => rule.kind === 'transaction' && rule.to[0] === alice)
    const request = toTransaction({ to: alice })
    expect(checkPolicy(policy, request, own)).toEqual({ allowed: true, rule: own, approvals: 0, log: null })
    expect(checkPolicy(policy, request, 1 - own)).toEqual({
      allowed: false,
      reasons: [],
      rules: [{ rule: 1 - own, reasons: [{ code: 'recipient_not_allowed' }] }],
      nearest: 1 - own,
    })
    const fail = () => {
      throw new Error('another rule was read')
    }
    const unread = new Proxy(payment, { get: fail, has: fail, ownKeys: fail })
    const rules = policy.rules.map((rule, index) => (index === own ? rule : unread))
    expect(checkPolicy({ ...policy, rules }, request, own)).toMatchObject({ allowed: true, rule: own })
    expect(() => checkPolicy({ ...policy, rules }, request)).toThrow('another rule was read')
  })

  test('a rule counts even if another one needs fewer approvals', () => {
    const rules = limited.rules.map((_, rule) => checkPolicy(limited, toTransaction(), rule))
    expect(checkPolicy(limited, toTransaction())).toMatchObject({ approvals: 0 })
    for (const [rule, verdict] of rules.entries()) {
      const { approvals } = limited.rules[rule] as Rule
      if (verdict.allowed) expect(verdict).toEqual({ allowed: true, rule, approvals, log: limited.log })
    }
    expect(rules.filter(({ allowed }) => allowed).length).toBeGreaterThan(1)
  })

  test.each([limited.rules.length, 255, -1, -2, 0.5, Number.NaN])('refuses the unknown rule %d', (rule) => {
    const refusal = { allowed: false, reasons: ['rule_unknown'], rules: [], nearest: null }
    expect(checkPolicy(limited, toTransaction(), rule)).toEqual(refusal)
  })

  test('one rule must match completely: parts of two do not count', () => {
    const policy = toPolicy({ ...payment, to: [alice] }, { ...payment, to: [bob], maxValueWei: String(ETHER) })
    expect(codes(policy, toTransaction({ to: alice, value: String(ETHER) }))).toEqual(['value_above_max'])
    expect(checkPolicy(policy, toTransaction({ to: bob, value: String(ETHER) }))).toMatchObject({ allowed: true })
  })

  test('the nearest rule has the fewest reasons, preferably with the same kind', () => {
    const verdict = checkPolicy(full, toTransaction({ to: token, value: String(9n * ETHER) }))
    expect(verdict).toMatchObject({ allowed: false, reasons: [] })
    if (verdict.allowed) throw new Error('allowed')
    expect(verdict.rules.map(({ rule }) => rule)).toEqual(full.rules.map((_, index) => index))
    expect(full.rules[verdict.nearest ?? -1]).toMatchObject({ kind: 'transaction', to: 'any' })
  })

  test.each<[string, Partial<TransactionRule>, Partial<TransactionRule>, Partial<TxMetadata>]>([
    [
      'amount',
      { maxValueWei: String(ETHER / 10n) },
      { maxValueWei: String(5n * ETHER) },
      { value: String(50n * ETHER) },
    ],
    ['fee', { maxFeeWei: '1' }, { maxFeeWei: '2' }, { maxFeePerGas: '1', gas: '21000' }],
    [
      'argument',
      { ...tokenTransfer, arguments: [{ at: 1, type: 'uint256', max: '1' }] },
      { ...tokenTransfer, arguments: [{ at: 1, type: 'uint256', max: '5' }] },
      { to: token, data: `0xa9059cbb${'00'.repeat(63)}32` },
    ],
  ])('names the rule with the highest limit if rules differ only in the limit of the %s', (_, low, high, changes) => {
    const rules = [
      { ...payment, ...low, approvals: 0 },
      { ...payment, ...high, approvals: 1 },
    ] as const
    for (const policy of [
      toPolicy(...rules),
      { ...toPolicy(...rules), rules: toPolicy(...rules).rules.toReversed() },
    ]) {
      const verdict = checkPolicy(policy, toTransaction(changes))
      if (verdict.allowed) throw new Error('allowed')
      expect(policy.rules[verdict.nearest ?? -1]).toMatchObject({ approvals: 1 })
    }
  })

  test('the verdict includes the required log witnesses', () => {
    expect(checkPolicy(full, toTransaction())).toMatchObject({ allowed: true, log: full.log })
  })
})

describe('a call', () => {
  const policy = toPolicy(tokenTransfer)
  const word = (hex: string) => hex.padStart(64, '0')
  const call = (data: string): PolicyRequest => toTransaction({ to: token, value: '0', data: `0x${data}` as Hex })
  const transfer = (to: string, amount: bigint | string) =>
    call(`a9059cbb${to}${typeof amount === 'string' ? amount : word(amount.toString(16))}`)

  test('is allowed with allowed words', () => {
    for (const amount of [0n, 1n, 500_000_000n]) {
      expect(checkPolicy(policy, transfer(word(alice.slice(2)), amount))).toMatchObject({ allowed: true, approvals: 0 })
    }
  })

  test.each<[string, PolicyRequest, string, number?]>([
    ['no data', call(''), 'data_length'],
    ['half a selector', call('a905'), 'data_length'],
    ['only the selector', call('a9059cbb'), 'data_length'],
    ['one word', call(`a9059cbb${word(alice.slice(2))}`), 'data_length'],
    ['three words', call(`a9059cbb${word(alice.slice(2))}${word('1')}${word('1')}`), 'data_length'],
    ['a byte more', call(`a9059cbb${word(alice.slice(2))}${word('1')}00`), 'data_length'],
    ['a byte less', call(`a9059cbb${word(alice.slice(2))}${word('1').slice(2)}`), 'data_length'],
    ['another function', call(`095ea7b3${word(alice.slice(2))}${word('1')}`), 'selector_not_allowed'],
    ['another person', transfer(word(token.slice(2)), 1n), 'argument_not_allowed', 0],
    [
      'a dirty byte before the address',
      transfer(`${'00'.repeat(11)}01${alice.slice(2)}`, 1n),
      'argument_undecodable',
      0,
    ],
    [
      'the first byte of the word dirty',
      transfer(`80${'00'.repeat(11)}${alice.slice(2)}`, 1n),
      'argument_undecodable',
      0,
    ],
    ['an address at the left of its word', transfer(alice.slice(2).padEnd(64, '0'), 1n), 'argument_undecodable', 0],
    ['one unit more', transfer(word(alice.slice(2)), 500_000_001n), 'argument_above_max', 1],
    ['all that a word holds', transfer(word(alice.slice(2)), 'f'.repeat(64)), 'argument_above_max', 1],
    ['words that changed places', transfer(word('1'), word(alice.slice(2))), 'argument_not_allowed', 0],
  ])('refused: %s', (_, request, code, at) => {
    const verdict = checkPolicy(policy, request)
    if (verdict.allowed) throw new Error('allowed')
    expect(verdict.rules[0]?.reasons[0]).toEqual(at === undefined ? { code } : { code, at })
  })

  test('has a separate limit for its value', () => {
    const request = toTransaction({
      to: token,
      value: '1',
      data: `0xa9059cbb${word(alice.slice(2))}${word('1')}` as Hex,
    })
    expect(codes(policy, request)).toEqual(['value_above_max'])
  })

  // `f(bytes)`: the first word is the offset of its content. With that word fixed, the others are where a reader expects them.
  const dynamic = toPolicy({
    ...tokenTransfer,
    selectors: ['0xd45754f8'],
    words: 3,
    arguments: [
      { at: 0, type: 'uint256', oneOf: ['32'] },
      { at: 1, type: 'uint256', oneOf: ['32'] },
      { at: 2, type: 'bytes32', oneOf: [`0x${'ab'.repeat(32)}`] },
    ],
  })
  const content = 'ab'.repeat(32)

  test.each<[string, string, string]>([
    ['an odd offset', word('21') + word('20') + content, 'argument_not_allowed'],
    ['an offset to itself', word('0') + word('20') + content, 'argument_not_allowed'],
    ['an offset beyond the end', word('60') + word('20') + content, 'argument_not_allowed'],
    ['a length beyond the end', word('20') + word('40') + content, 'argument_not_allowed'],
    ['a tail that overlaps the head', word('20') + word('0') + content, 'argument_not_allowed'],
    ['bytes after the tail', `${word('20') + word('20') + content}00`, 'data_length'],
    ['a second tail', word('20') + word('20') + content + content, 'data_length'],
    ['other content', `${word('20') + word('20')}${'ac'.repeat(32)}`, 'argument_not_allowed'],
  ])('refused where the words of a dynamic argument are fixed: %s', (_, words, code) => {
    expect(codes(dynamic, call(`d45754f8${word('20')}${word('20')}${content}`))).toEqual([])
    expect(codes(dynamic, call(`d45754f8${words}`))).toEqual([code])
  })
})

describe('messages and typed data', () => {
  const content: TypedData = {
    domain: { name: 'Permits', version: '1', chainId: 1, verifyingContract: token },
    types: { Permit: [{ name: 'value', type: 'uint256' }] },
    primaryType: 'Permit',
    message: { value: '1' },
  }
  const listed = toPolicy({
    kind: 'typed-data',
    domains: [{ name: 'Permits', version: '1', chainId: 1, verifyingContract: token }],
    primaryTypes: ['Permit'],
    approvals: 1,
    approvers: 'any',
  })
  const any = toPolicy({ kind: 'typed-data', domains: 'any', primaryTypes: 'any', approvals: 2, approvers: 'any' })
  const typed = (changes: Partial<TypedData> = {}) =>
    ({ kind: 'typed-data', content: { ...content, ...changes } }) as const
  const withDomain = (domain: Record<string, unknown>) => typed({ domain })

  test('a message needs a rule for messages', () => {
    const request: PolicyRequest = { kind: 'message', content: { message: '0x68656c6c6f' } }
    expect(checkPolicy(toPolicy({ kind: 'message', approvals: 2, approvers: 'any' }), request)).toMatchObject({
      allowed: true,
      approvals: 2,
    })
    for (const policy of [only, listed, any]) expect(codes(policy, request)).toEqual(['kind_not_allowed'])
  })

  test.each<[string, Record<string, unknown>]>([
    ['as written', content.domain],
    ['its chain in decimal', { ...content.domain, chainId: '1' }],
    ['its chain in hex', { ...content.domain, chainId: '0x01' }],
    ['its contract in upper case', { ...content.domain, verifyingContract: token.toUpperCase().replace('0X', '0x') }],
  ])('a listed domain: %s', (_, domain) => {
    expect(checkPolicy(listed, withDomain(domain))).toMatchObject({ allowed: true, approvals: 1 })
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['another name', { ...content.domain, name: 'permits' }, 'domain_not_allowed'],
    ['a name of other characters', { ...content.domain, name: 'Permit\u0455' }, 'domain_not_allowed'],
    ['another version', { ...content.domain, version: '2' }, 'domain_not_allowed'],
    ['another chain', { ...content.domain, chainId: 10 }, 'domain_not_allowed'],
    ['another contract', { ...content.domain, verifyingContract: alice }, 'domain_not_allowed'],
    ['no chain', { name: 'Permits', version: '1', verifyingContract: token }, 'domain_not_allowed'],
    ['only the name', { name: 'Permits' }, 'domain_not_allowed'],
    ['a salt', { ...content.domain, salt: `0x${'00'.repeat(32)}` }, 'domain_has_salt'],
  ])('a domain with %s is refused', (_, domain, code) => {
    expect(codes(listed, withDomain(domain))).toEqual([code])
  })

  test('"any" allows everything except a salt', () => {
    expect(codes(any, withDomain({ name: 'x', salt: `0x${'00'.repeat(32)}` }))).toEqual(['domain_has_salt'])
    expect(checkPolicy(any, withDomain({ name: 'x' }))).toMatchObject({ allowed: true, approvals: 2 })
  })

  test('refuses another primary type', () => {
    const types = { ...content.types, Order: [{ name: 'value', type: 'uint256' }] }
    expect(codes(listed, typed({ types, primaryType: 'Order' }))).toEqual(['primary_type_not_allowed'])
  })
})

// `policy-v1.vectors.json` has a request of each form, and its neighbours.
describe('a rule that spends', () => {
  const rule = budgeted.rules.findIndex(({ kind }) => kind === 'spend')
  const vaultAddress: Hex = `0x${'5a'.repeat(20)}`
  const nowMs = 1_800_000_000_999
  const nowS = 1_800_000_000
  const context = { vaultAddress, nowMs }
  const authorization: TypedData = {
    domain: { name: 'USD Coin', version: '2', chainId: 1, verifyingContract: token },
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
      to: alice,
      value: '7',
      validAfter: 0,
      validBefore: nowS,
      nonce: `0x${'00'.repeat(32)}`,
    },
  }
  const typed = (domain: object, message: object = {}): PolicyRequest => ({
    kind: 'typed-data',
    content: {
      ...authorization,
      domain: { ...authorization.domain, ...domain },
      message: { ...authorization.message, ...message },
    },
  })
  const check = (request: PolicyRequest, policy: Policy = budgeted, index: number | undefined = rule) =>
    checkPolicy(policy, request, index, context)
  const reasonsOf = (request: PolicyRequest) => {
    const verdict = check(request)
    return verdict.allowed ? [] : verdict.rules.flatMap(({ reasons }) => reasons.map(({ code }) => code))
  }
  const upper = (address: Hex) => address.toUpperCase().replace('0X', '0x')

  test.each<[string, object, object]>([
    ['chain in hex', { chainId: '0x1' }, {}],
    ['chain in padded hex', { chainId: `0x${'1'.padStart(64, '0')}` }, {}],
    ['chain in decimal', { chainId: '1' }, {}],
    ['addresses in upper case', { verifyingContract: upper(token) }, { from: upper(vaultAddress), to: upper(alice) }],
    ['integers as numbers', {}, { value: 7, validAfter: nowS, validBefore: nowS + 3_600 }],
    ['integers in hex', {}, { value: '0x07', validAfter: `0x${nowS.toString(16)}`, validBefore: '0x0' }],
  ])('reads an authorization with its %s', (_, domain, message) => {
    expect(check(typed(domain, message))).toMatchObject({
      allowed: true,
      rule,
      spends: [{ chainId: 1, token, amount: 7n }],
    })
  })

  test.each<[string, object, object, string[]]>([
    ['a chain that only looks like the allowed one', { chainId: '0x101' }, {}, ['chain_not_allowed']],
    ['a chain above 2^53 that rounds to another', { chainId: String(2n ** 64n + 1n) }, {}, ['chain_not_allowed']],
    ['another token', { verifyingContract: bob }, {}, ['asset_without_budget']],
    ['a start in the next second', {}, { validAfter: nowS + 1 }, ['validity_not_allowed']],
    ['the largest end', {}, { validBefore: String(2n ** 256n - 1n) }, ['validity_not_allowed']],
    ['another payer and payee', {}, { from: alice, to: token }, ['payer_not_vault', 'recipient_not_allowed']],
  ])('refuses an authorization with %s', (_, domain, message, codes) => {
    expect(reasonsOf(typed(domain, message))).toEqual(codes)
  })

  test('adds up values and fees above 2^256', () => {
    const most = String(2n ** 256n - 1n)
    const request = toTransaction({ value: most, gas: String(2n ** 64n - 1n), maxFeePerGas: most })
    const amount = 2n ** 256n - 1n + (2n ** 64n - 1n) * (2n ** 256n - 1n)
    expect(check(request)).toMatchObject({ allowed: true, spends: [{ chainId: 1, token: null, amount }] })
  })

  test('counts a transfer of 0, in data of either case', () => {
    const data = `0xA9059CBB${alice.slice(2).padStart(64, '0')}${'0'.repeat(64)}` as Hex
    const request = toTransaction({
      to: upper(token) as Hex,
      value: '0',
      data,
      maxFeePerGas: '0',
      maxPriorityFeePerGas: '0',
    })
    expect(check(request)).toMatchObject({ spends: [{ chainId: 1, token, amount: 0n }] })
  })

  test('needs the vault and the time', () => {
    for (const request of [toTransaction(), typed({})]) {
      const verdict = checkPolicy(budgeted, request, rule)
      expect(verdict).toMatchObject({ allowed: false, rules: [{ rule, reasons: [{ code: 'kind_not_allowed' }] }] })
    }
  })

  test('allows no message, and no form that it does not list', () => {
    expect(reasonsOf({ kind: 'message', content: { message: '0x' } })).toEqual(['kind_not_allowed'])
    const { spenders: _, ...less } = spend
    const policy = createPolicy({ ...budgeted, rules: [{ ...less, forms: ['transfer'] }] })
    for (const request of [toTransaction(), typed({})]) expect(check(request, policy, 0).allowed).toBe(false)
  })

  test('other rules count nothing', () => {
    const verdict = check(
      typed({}),
      budgeted,
      budgeted.rules.findIndex(({ kind }) => kind === 'typed-data'),
    )
    expect(verdict).toMatchObject({ allowed: true, approvals: 1 })
    expect(verdict).not.toHaveProperty('spends')
  })
})

describe('refuses malformed requests before any rule is checked', () => {
  const open = toPolicy(
    { ...payment, chainIds: 'any', to: 'any' },
    { kind: 'message', approvals: 1, approvers: 'any' },
    {
      kind: 'typed-data',
      domains: 'any',
      primaryTypes: 'any',
      approvals: 1,
      approvers: 'any',
    },
  )
  const { value, ...incomplete } = txMetadata
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a text', 'transaction'],
    ['no kind', { txMetadata }],
    ['an authorization', { kind: 'authorization', authorization: { chainId: 1, address: alice, nonce: 0 } }],
    ['a hash', { kind: 'digest', digest: `0x${'00'.repeat(32)}` }],
    ['a member of every object as kind', { kind: 'toString', content: {} }],
    ['a transaction without value', { kind: 'transaction', txMetadata: incomplete }],
    ['a transaction with an access list', { kind: 'transaction', txMetadata: { ...txMetadata, accessList: [] } }],
    ['a transaction without a recipient', { kind: 'transaction', txMetadata: { ...txMetadata, to: null } }],
    ['a value below zero', toTransaction({ value: '-1' })],
    ['a value in hex', toTransaction({ value: '0x1' })],
    ['a value with a leading zero', toTransaction({ value: '01' })],
    ['gas beyond 2^64', toTransaction({ gas: String(2n ** 64n) })],
    ['half a byte of data', toTransaction({ data: '0x0' })],
    ['a nonce below zero', toTransaction({ nonce: -1 })],
    ['a member more', { ...toTransaction(), approvals: [] }],
    ['a message that is a text', { kind: 'message', content: { message: 'hello' } }],
    ['a message that is not a string', { kind: 'message', content: { message: 1 } }],
    ['a message with a member more', { kind: 'message', content: { message: '0x', more: 1 } }],
    [
      'typed data without types',
      { kind: 'typed-data', content: { domain: { name: 'x' }, primaryType: 'A', message: {} } },
    ],
    [
      'typed data of no domain',
      { kind: 'typed-data', content: { domain: {}, types: { A: [] }, primaryType: 'A', message: {} } },
    ],
    [
      'typed data with a value more',
      { kind: 'typed-data', content: { domain: { name: 'x' }, types: { A: [] }, primaryType: 'A', message: { b: 1 } } },
    ],
  ])('%s', (_, request) => {
    expect(checkPolicy(open, request as PolicyRequest)).toEqual({
      allowed: false,
      reasons: ['request_malformed'],
      rules: [],
      nearest: null,
    })
  })
})

describe('a schedule', () => {
  const startsAtMs = scheduled.schedule?.startsAtMs ?? 0
  const at = (nonce: number, timeMs: unknown, source: unknown = satellite) => ({
    ...toTransaction({ nonce }),
    sample: { source, timeMs },
  })

  test.each([
    [0, startsAtMs],
    [9, startsAtMs],
    [10, startsAtMs + 86_400_000],
    [19, startsAtMs + 86_400_000],
    [20, startsAtMs + 2 * 86_400_000],
  ])('allows nonce %i from its time on, and not a millisecond before', (nonce, dueMs) => {
    expect(checkPolicy(scheduled, at(nonce, dueMs) as PolicyRequest)).toMatchObject({ allowed: true, approvals: 0 })
    expect(codes(scheduled, at(nonce, dueMs - 1))).toEqual(['nonce_not_due'])
  })

  test.each<[string, unknown, string]>([
    ['no sample', toTransaction({ nonce: 0 }), 'sample_missing'],
    ['another satellite', at(0, startsAtMs, { kind: 'satellite', key: toKey(9) }), 'sample_source_not_allowed'],
    ['a source that does not sign', at(0, startsAtMs, { kind: 'unsigned' }), 'sample_source_not_allowed'],
    ['the beacon with another genesis', at(0, startsAtMs, { ...beacon, genesisS: 1 }), 'sample_source_not_allowed'],
    ['no source', at(0, startsAtMs, null), 'sample_source_not_allowed'],
    ['a source without bytes', at(0, startsAtMs, () => satellite), 'request_malformed'],
    ['a time that is a text', at(0, String(startsAtMs)), 'request_malformed'],
    ['a time without end', at(0, Number.POSITIVE_INFINITY), 'request_malformed'],
    ['a time beyond 2^53', at(0, 2 ** 53), 'request_malformed'],
  ])('refused: %s', (_, request, code) => {
    expect(codes(scheduled, request)).toEqual([code])
  })

  test('accepts the time from either source', () => {
    expect(checkPolicy(scheduled, at(0, startsAtMs, beacon) as PolicyRequest)).toMatchObject({ allowed: true })
  })

  test('approvals do not make a nonce due earlier', () => {
    expect(codes(scheduled, at(0, startsAtMs - 1))).toEqual(['nonce_not_due'])
    const verdict = checkPolicy(scheduled, {
      ...toTransaction({ nonce: 0, to: token }),
      sample: { source: satellite, timeMs: startsAtMs - 1 },
    } as PolicyRequest)
    expect(verdict).toMatchObject({ allowed: false, reasons: ['nonce_not_due'] })
  })
})

describe('the sources of a schedule', () => {
  const stranger = { kind: 'satellite', key: toKey(9) } as const
  test.each<[string, Parameters<typeof canTellTime>[1], boolean]>([
    ['one of its sources', [satellite], true],
    ['one of its sources among others', [stranger, beacon], true],
    ['strangers', [stranger, { kind: 'unsigned' }], false],
    ['a beacon of another genesis', [{ ...beacon, genesisS: 1 } as typeof beacon], false],
    ['none', [], false],
  ])('%s', (_, sources, expected) => {
    expect(canTellTime(scheduled, sources)).toBe(expected)
    expect(canTellTime(limited, sources)).toBe(true)
  })
})
