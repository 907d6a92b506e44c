import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alice, bob, type StartedVault, startVault, toFailure } from '../../test/vaults/vaults.ts'
import { type PrepareRequest, prepare } from './prepare.ts'
import { type Prepared, parsePrepared } from './prepared.ts'

let started: StartedVault

beforeAll(async () => {
  started = await startVault()
})
afterAll(() => started.stop())

const typedData = {
  kind: 'typed-data',
  domain: { name: 'Shop', chainId: 31337 },
  types: { Order: [{ name: 'amount', type: 'uint256' }] },
  primaryType: 'Order',
  message: { amount: 5n },
} as const

const requests: Record<string, PrepareRequest> = {
  transaction: { kind: 'transaction', to: bob, value: '1' },
  message: { kind: 'message', message: 'I agree.' },
  'typed data': typedData,
}

const toCode = (value: unknown) => toFailure(Promise.resolve().then(() => parsePrepared(value)))

describe('prepare', () => {
  test.each(Object.entries(requests))('another device parses the same request: %s', async (_name, request) => {
    const prepared = await prepare(started.client, started.vault, request)
    expect(parsePrepared(JSON.stringify(prepared))).toEqual(prepared)
    expect(parsePrepared(JSON.parse(JSON.stringify(prepared)))).toEqual(prepared)
  })

  test('names the rule, and how many approvals it requires: none, one, two', async () => {
    const { client, vault } = started
    const small = await prepare(client, vault, { kind: 'transaction', to: alice, value: '0.1' })
    const large = await prepare(client, vault, { kind: 'transaction', to: alice, value: '0.11' })
    const message = await prepare(client, vault, { kind: 'message', message: 'I agree.' })
    expect([small.approvals, large.approvals, message.approvals]).toEqual([0, 1, 2])
    for (const { rule, approvals } of [small, large, message])
      expect(vault.policy.rules[rule]).toMatchObject({ approvals })
  })

  test.each<[string, PrepareRequest, RegExp]>([
    ['an amount above every limit', { kind: 'transaction', to: alice, value: '5.1' }, /above the limit/],
    ['a contract call', { kind: 'transaction', to: alice, data: '0x12345678' }, /without data/],
    ['a fee above the limit', { kind: 'transaction', to: alice, gas: 30_000_000n }, /fee/],
    [
      'typed data of another type',
      { ...typedData, primaryType: 'Permit', types: { Permit: typedData.types.Order } },
      /type/,
    ],
  ])('rejects %s with the reason, before any approval', async (_name, request, reason) => {
    const { client, vault, service } = started
    const error = await toFailure(prepare(client, vault, request))
    expect(error.code).toBe('policy_refused')
    expect(error.details).toMatch(reason)
    expect(service.requests.filter((name) => name.startsWith('POST /sign'))).toHaveLength(1)
  })

  test.each<[string, unknown, string]>([
    ['a kind that no vault signs', { kind: 'authorization', address: alice }, 'invalid_request'],
    ['no recipient', { kind: 'transaction' }, 'invalid_request'],
    ['half a surrogate pair', { kind: 'message', message: '\ud800' }, 'invalid_message'],
    ['typed data of another chain', { ...typedData, domain: { chainId: 1 } }, 'invalid_typed_data'],
  ])('rejects %s', async (_name, request, code) => {
    expect((await toFailure(prepare(started.client, started.vault, request as never))).code).toBe(code)
  })

  test.each([0, -1, 86_400_001, Number.NaN])('rejects validForMs of %d', async (validForMs) => {
    const { client, vault } = started
    const error = await toFailure(prepare(client, vault, requests.message as PrepareRequest, { validForMs }))
    expect(error.code).toBe('invalid_request')
  })

  test('rejects with vault_not_found for another user', async () => {
    const { client, vault } = started
    const error = await toFailure(
      prepare(client, { ...vault, address: `0x${'12'.repeat(20)}` }, requests.transaction as PrepareRequest),
    )
    expect(error.code).toBe('vault_not_found')
  })
})

describe('parsePrepared', () => {
  let prepared: Prepared & { kind: 'transaction' }

  beforeAll(async () => {
    const { client, vault } = started
    prepared = (await prepare(client, vault, requests.transaction as PrepareRequest)) as typeof prepared
  })

  test.each<[string, (value: Prepared & { kind: 'transaction' }) => unknown]>([
    ['another recipient', (value) => ({ ...value, content: { ...value.content, to: alice } })],
    ['another amount', (value) => ({ ...value, content: { ...value.content, value: '2' } })],
    ['another nonce', (value) => ({ ...value, content: { ...value.content, nonce: 7 } })],
    ['another digest', (value) => ({ ...value, digest: `0x${'ab'.repeat(32)}` })],
    ['another policy hash', (value) => ({ ...value, policyHash: 'ab'.repeat(32) })],
    ['weaker rules', (value) => ({ ...value, policy: { ...value.policy, rules: value.policy.rules.slice(0, 2) } })],
    ['another rule', (value) => ({ ...value, rule: value.rule + 1 })],
    ['a rule that the policy lacks', (value) => ({ ...value, rule: value.policy.rules.length })],
    ['a rule as a text', (value) => ({ ...value, rule: String(value.rule) })],
    ['fewer approvals', (value) => ({ ...value, approvals: 0 })],
    ['approvals as a text', (value) => ({ ...value, approvals: '1' })],
  ])('rejects %s than the content implies with prepared_mismatch', async (_name, change) => {
    expect((await toCode(change(prepared))).code).toBe('prepared_mismatch')
  })

  test.each<[string, (value: Prepared) => unknown]>([
    ['a member too many', (value) => ({ ...value, note: 'rent' })],
    ['a member too few', ({ expiresMs: _, ...value }) => value],
    ['no rule', ({ rule: _, ...value }) => value],
    ['another version', (value) => ({ ...value, version: 2 })],
    ['an address in capitals', (value) => ({ ...value, address: value.address.toUpperCase() })],
    ['an invalid address', (value) => ({ ...value, address: '0x12' })],
    ['an end that is not a time', (value) => ({ ...value, expiresMs: 1.5 })],
    ['an end that no calendar has', (value) => ({ ...value, expiresMs: 8.64e15 + 1 })],
    ['another kind', (value) => ({ ...value, kind: 'message' })],
    ['an unknown kind', (value) => ({ ...value, kind: 'authorization' })],
    ['invalid content', (value) => ({ ...value, content: null })],
    ['an invalid policy', (value) => ({ ...value, policy: {} })],
    ['nothing', () => undefined],
    ['a list', (value) => [value]],
    ['text that is not JSON', () => '{'],
    ['text that is cut', (value) => JSON.stringify(value).slice(0, -1)],
    ['a member twice', (value) => JSON.stringify(value).replace('{', '{"version":1,')],
    ['text of a megabyte', (value) => JSON.stringify(value) + ' '.repeat(1_000_000)],
    ['nesting without end', () => '['.repeat(5_000) + ']'.repeat(5_000)],
  ])('rejects with prepared_malformed: %s', async (_name, change) => {
    expect((await toCode(change(prepared))).code).toBe('prepared_malformed')
  })

  test('rejects ambiguous typed data and a message that is not hex', async () => {
    const { client, vault } = started
    const typed = await prepare(client, vault, typedData)
    const bare = { ...typed.content, types: { Order: [{ name: 'amount', type: 'uint' }] } }
    expect((await toCode({ ...typed, content: bare })).code).toBe('prepared_malformed')
    const message = await prepare(client, vault, requests.message as PrepareRequest)
    expect((await toCode({ ...message, content: { message: 'I agree.' } })).code).toBe('prepared_malformed')
  })

  test('rejects a request that the rules forbid, even if it was not created by prepare', async () => {
    const error = await toCode({ ...prepared, content: { ...prepared.content, chainId: 1 } })
    expect(error.code).toBe('policy_refused')
    expect(error.details).toContain('chain')
  })
})
