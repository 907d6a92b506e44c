import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { createRandom } from '../../protocol/fuzz/random.ts'
import { drawPolicy } from '../fuzz/drawPolicy.ts'
import schema from '../spec/policy-v1.schema.json' with { type: 'json' }
import { agent, budgeted, full, limited, payment, scheduled, spend, tokenTransfer } from '../test/policies.ts'
import vectors from '../vectors/policy-v1.vectors.json' with { type: 'json' }
import { createPolicy } from './assertPolicy.ts'
import type { Policy } from './policy.ts'

const validate = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(schema)
const without = (value: object, name: string) =>
  Object.fromEntries(Object.entries(value).filter(([key]) => key !== name))

test('the schema accepts every policy', () => {
  const random = createRandom(3)
  const drawn = Array.from({ length: 200 }, () => createPolicy(drawPolicy(random)))
  for (const policy of [limited, full, scheduled, budgeted, ...vectors.policies.map((one) => one.policy), ...drawn]) {
    expect(validate(policy), JSON.stringify(policy)).toBe(true)
  }
})

test.each<[string, unknown]>([
  ['a member more', { ...limited, label: '' }],
  ['no log', without(limited, 'log')],
  ['another version', { ...limited, version: 2 }],
  ['a schedule without time', without(scheduled, 'time')],
  ['time without a schedule', without(scheduled, 'schedule')],
  ['a source that does not sign', { ...scheduled, time: [{ kind: 'unsigned' }] }],
  ['a cap as a number', withRule({ ...payment, maxValueWei: 1 })],
  ['an address in upper case', withRule({ ...payment, to: [`0x${'AB'.repeat(20)}`] })],
  ['chain 0', withRule({ ...payment, chainIds: [0] })],
  ['selectors without words', withRule(without(without(tokenTransfer, 'words'), 'arguments'))],
  ['arguments without selectors', withRule({ ...payment, arguments: tokenTransfer.arguments })],
  [
    'an argument with two limits',
    withRule({ ...tokenTransfer, arguments: [{ at: 0, type: 'uint8', oneOf: ['1'], max: '1' }] }),
  ],
  ['a maximum for an address', withRule({ ...tokenTransfer, arguments: [{ at: 0, type: 'address', max: '1' }] })],
  ['an integer of 7 bits', withRule({ ...tokenTransfer, arguments: [{ at: 0, type: 'uint7' }] })],
  ['a message without approval', withRule({ kind: 'message', approvals: 0, approvers: 'any' })],
  [
    'a domain with a salt',
    withRule({ kind: 'typed-data', domains: [{ salt: '0x' }], primaryTypes: 'any', approvals: 1, approvers: 'any' }),
  ],
  [
    'an empty domain',
    withRule({ kind: 'typed-data', domains: [{}], primaryTypes: 'any', approvals: 1, approvers: 'any' }),
  ],
  ['an authorization', withRule({ kind: 'authorization', approvals: 1 })],
  ['a rule without approvers', withRule(without(payment, 'approvers'))],
  ['an agent key without budgets', { ...limited, approvers: [agent.approver] }],
  ['an approver without a type', { ...limited, approvers: limited.approvers.map((one) => without(one, 'type')) }],
  [
    '33 approvers',
    { ...limited, approvers: Array.from({ length: 33 }, (_, at) => ({ ...limited.approvers[0], rpId: `${at}` })) },
  ],
  ['a rule that spends without budgets', withRule(spend)],
  ['an origin without budgets', { ...limited, log: budgeted.log }],
  ['budgets without a log', { ...budgeted, log: null }],
  ['budgets without an origin', { ...budgeted, log: full.log }],
  ['budgets and a schedule', { ...scheduled, log: budgeted.log, budgets: budgeted.budgets }],
  ['budgets without a rule that spends', { ...budgeted, rules: [{ kind: 'message', approvals: 1, approvers: [0] }] }],
  ['a period of a second', { ...budgeted, budgets: [{ chainId: 1, token: null, limit: '1', periodS: 1 }] }],
  ['"any" beside budgets', { ...budgeted, rules: [spend, { kind: 'message', approvals: 1, approvers: 'any' }] }],
  ['a rule without approval beside budgets', { ...budgeted, rules: [spend, { ...payment, approvers: [0] }] }],
  ['an unknown form', { ...budgeted, rules: [{ ...spend, forms: ['permit'] }] }],
  ['Permit2 without spenders', { ...budgeted, rules: [without(spend, 'spenders')] }],
  ['spenders without Permit2', { ...budgeted, rules: [{ ...spend, forms: ['coin'] }] }],
  ['neither a session nor approvals', { ...budgeted, rules: [{ ...spend, approvals: 0 }] }],
])('the schema refuses %s', (_, policy) => {
  expect(validate(policy)).toBe(false)
})

function withRule(rule: unknown): Policy {
  return { ...limited, rules: [rule] } as Policy
}
