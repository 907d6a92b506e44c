import { parseEther } from 'viem'
import { expect, test } from 'vitest'
import { EMPTY_DRAFT } from './newVaultDraft.ts'
import { parseVaultFields, type VaultFields } from './parseVaultFields.ts'

const parse = (written: VaultFields) => parseVaultFields(written, 'ETH')
const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const fields: VaultFields = { ...EMPTY_DRAFT.fields, limit: '0.1' }
const agent: VaultFields = { ...fields, template: 'agent', count: '10', refuge: friend.toLowerCase() }
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
  ['an agent that never pays', { ...agent, count: '0' }, 'count', /whole number/],
  ['an agent that pays half', { ...agent, count: '0.5' }, 'count', /whole number/],
  ['an agent without a number', { ...agent, count: '' }, 'count', /whole number/],
  ['an agent with too many payments', { ...agent, count: '1000001' }, 'count', /at most/],
  ['an agent without a second vault', { ...agent, refuge: '' }, 'refuge', /Choose a second vault/],
  ['an agent with an invalid second vault', { ...agent, refuge: '0x1' }, 'refuge', /40 hex digits/],
])('shows the error of %s only at its field', (_, written, name, message) => {
  const parsed = parse(written)
  expect(parsed).toEqual({ errors: { [name]: expect.stringMatching(message) } })
})

test('reports every error at once', () => {
  const parsed = parse({ ...agent, limit: 'x', fee: '', count: '', refuge: '', recipients: 'me' })
  expect('errors' in parsed && Object.keys(parsed.errors)).toEqual(['limit', 'fee', 'recipients', 'count', 'refuge'])
})

test('ignores fields of another template', () => {
  const parsed = parse({ ...fields, recipients: 'nobody', count: 'x', refuge: '?' })
  expect(parsed).toMatchObject({ terms: { limitWei: parseEther('0.1'), recipients: null, agent: null, approvals: 1 } })
  const limit = parse({ ...fields, template: 'limit', approvals: '3' })
  expect(limit).toMatchObject({ terms: { approvals: 0 } })
})

test('accepts a list without a limit, and addresses with any separator', () => {
  const other = `0x${'ab'.repeat(20)}`
  const parsed = parse({ ...list, recipients: ` ${friend.toLowerCase()},\n${other};` })
  expect(parsed).toMatchObject({ terms: { limitWei: null, recipients: [friend, expect.stringMatching(/^0x/)] } })
})

test('reads an agent’s rate and second vault', () => {
  expect(parse(agent)).toMatchObject({
    terms: { recipients: null, agent: { everyS: 86_400, count: 10, refuge: friend.toLowerCase() } },
  })
})
