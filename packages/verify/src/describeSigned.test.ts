import { expect, test } from 'vitest'
import { describeSigned } from './describeSigned.ts'
import { issueGolden, issueGoldenV2 } from './issues.fake.ts'

const one = await issueGolden()
const transaction = await issueGoldenV2()
const authorization = await issueGoldenV2({ signing: { kind: 'authorization' } })
const message = await issueGoldenV2({ signing: { kind: 'message' } })

test('a transaction is described alike in both versions', () => {
  expect(describeSigned(transaction.receipt, undefined)).toEqual(describeSigned(one.receipt, undefined))
})

test.each([
  ['0', '0 ether'],
  ['1', '0.000000000000000001 ether'],
  ['1500000000000000000', '1.5 ether'],
  ['20000000000000000000', '20 ether'],
])('%s wei are %s', (value, expected) => {
  const receipt = { ...one.receipt, transaction: { ...one.receipt.transaction, value } }
  expect(describeSigned(receipt, undefined).facts).toContainEqual({ name: 'Amount', value: expected })
})

test('an authorization warns of what its code can do', () => {
  const { sentence, warnings } = describeSigned(authorization.receipt, undefined)
  expect(sentence).toMatch(/authorized the code at 0x(7e){20} to act for it on chain 31337/)
  expect(warnings.join()).toContain('everything')
})

test('off the chain, only an opening says what was signed', () => {
  const { content } = message.opening ?? {}
  if (typeof content !== 'object') throw new Error('the simulator shows the content')
  expect(describeSigned(message.receipt, undefined).sentence).toContain('signed something at 2026-06-15')
  expect(JSON.stringify(describeSigned(message.receipt, undefined))).not.toContain('hello')
  expect(describeSigned(message.receipt, content).facts).toContainEqual({ name: 'Message', value: 'hello' })
})
