import { parseEther } from 'viem'
import { expect, test } from 'vitest'
import { toKey } from '../../../../packages/policy/test/policies.ts'
import { EMPTY_DRAFT } from './newVaultDraft.ts'
import { parseVaultFields, type VaultFields } from './parseVaultFields.ts'

const usdc = { chainId: 1, address: `0x${'70'.repeat(20)}`, symbol: 'USDC', decimals: 6, name: 'USD Coin' } as const
const parse = (written: VaultFields) => parseVaultFields(written, { tokens: [usdc], coin: 'ETH' })
const agentKey = toKey(9)
const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const fields: VaultFields = { ...EMPTY_DRAFT.fields, limit: '0.1' }
const agent: VaultFields = { ...fields, template: 'budget', asset: usdc.address, limit: '10', agentKey }
const list: VaultFields = { ...fields, template: 'list', limit: '', recipients: friend, approvals: '0' }

test.each<[string, VaultFields, keyof VaultFields, RegExp]>([
  ['no limit', { ...fields, limit: '' }, 'limit', /Enter an amount/],
  ['a limit of zero', { ...fields, limit: '0' }, 'limit', /above zero/],
  ['a negative limit', { ...fields, limit: '-1' }, 'limit', /positive/],
  ['a limit of 19 decimals', { ...fields, limit: '0.0000000000000000001' }, 'limit', /18 decimals/],
  ['a limit with a comma', { ...fields, limit: '0,1' }, 'limit', /point/],
  ['no fee', { ...fields, fee: ' ' }, 'fee', /Enter an amount/],
  ['an empty list', { ...list, recipients: ' \n' }, 'recipients', /at least one/],
  ['a mistyped address on the list', { ...list, recipients: `${friend}\n0x12` }, 'recipients', /^Address 2: /],
  ['a wrong checksum', { ...list, recipients: friend.replace('C8', 'c8') }, 'recipients', /checksum/],
  ['too many addresses', { ...list, recipients: `${friend}\n`.repeat(101) }, 'recipients', /at most 100/],
  ['a budget of zero', { ...agent, limit: '0.000000' }, 'limit', /above zero/],
  ['a budget with more decimals than the token', { ...agent, limit: '0.0000001' }, 'limit', /6 decimals for USDC/],
  ['a budget of an unknown token', { ...agent, asset: friend }, 'asset', /Unknown token/],
  ['an agent without a key', { ...agent, agentKey: ' ' }, 'agentKey', /Create a key/],
  ['a key that is too short', { ...agent, agentKey: agentKey.slice(2) }, 'agentKey', /64 hex digits/],
  ['an address instead of a key', { ...agent, agentKey: friend }, 'agentKey', /64 hex digits/],
  ['a key that is not a point', { ...agent, agentKey: 'ff'.repeat(32) }, 'agentKey', /isn’t an Ed25519/],
  ['a key of small order', { ...agent, agentKey: `01${'00'.repeat(31)}` }, 'agentKey', /isn’t an Ed25519/],
  ['an agent with a mistyped payee', { ...agent, recipients: '0x12' }, 'recipients', /^Address 1: /],
])('shows the error of %s only at its field', (_, written, name, message) => {
  const parsed = parse(written)
  expect(parsed).toEqual({ errors: { [name]: expect.stringMatching(message) } })
})

test('reports every error at once', () => {
  const parsed = parse({ ...agent, asset: 'x', limit: 'x', agentKey: '', recipients: 'me', fee: '' })
  expect('errors' in parsed && Object.keys(parsed.errors)).toEqual(['asset', 'limit', 'recipients', 'agentKey'])
})

test('ignores fields of another template', () => {
  const parsed = parse({ ...fields, recipients: 'nobody', asset: 'x', agentKey: '?' })
  expect(parsed).toMatchObject({ terms: { limitWei: parseEther('0.1'), recipients: null, agent: null, approvals: 1 } })
  const limit = parse({ ...fields, template: 'limit', approvals: '3' })
  expect(limit).toMatchObject({ terms: { approvals: 0 } })
})

test('accepts a list without a limit, and addresses with any separator', () => {
  const other = `0x${'ab'.repeat(20)}`
  const parsed = parse({ ...list, recipients: ` ${friend.toLowerCase()},\n${other};` })
  expect(parsed).toMatchObject({ terms: { limitWei: null, recipients: [friend, expect.stringMatching(/^0x/)] } })
})

test('reads an agent’s budget, in the units of its asset', () => {
  const read = (change: Partial<VaultFields>) => parse({ ...agent, ...change })
  expect(read({ agentKey: agentKey.toUpperCase() })).toMatchObject({
    terms: {
      recipients: null,
      agent: { token: usdc.address, limit: 10_000_000n, periodS: 86_400, publicKey: agentKey },
    },
  })
  expect(read({ asset: '', periodS: '0', recipients: friend })).toMatchObject({
    terms: { recipients: [friend], agent: { token: null, limit: parseEther('10'), periodS: 0 } },
  })
})
