import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { createRandom } from '../../protocol/fuzz/random.ts'
import { drawPolicy } from '../fuzz/drawPolicy.ts'
import schema from '../spec/policy-v1.schema.json' with { type: 'json' }
import { full, limited, payment, scheduled, tokenTransfer } from '../test/policies.ts'
import vectors from '../vectors/policy-v1.vectors.json' with { type: 'json' }
import { createPolicy } from './assertPolicy.ts'
import type { Policy } from './policy.ts'

const validate = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(schema)
const without = (value: object, name: string) =>
  Object.fromEntries(Object.entries(value).filter(([key]) => key !== name))

test('the schema accepts every policy', () => {
  const random = createRandom(3)
  const drawn = Array.from({ length: 200 }, () => createPolicy(drawPolicy(random)))
  for (const policy of [limited, full, scheduled, ...vectors.policies.map((one) => one.policy), ...drawn]) {
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
  ['a message without approval', withRule({ kind: 'message', approvals: 0 })],
  [
    'a domain with a salt',
    withRule({ kind: 'typed-data', domains: [{ salt: '0x' }], primaryTypes: 'any', approvals: 1 }),
  ],
  ['an empty domain', withRule({ kind: 'typed-data', domains: [{}], primaryTypes: 'any', approvals: 1 })],
  ['an authorization', withRule({ kind: 'authorization', approvals: 1 })],
])('the schema refuses %s', (_, policy) => {
  expect(validate(policy)).toBe(false)
})

function withRule(rule: unknown): Policy {
  return { ...limited, rules: [rule] } as Policy
}
