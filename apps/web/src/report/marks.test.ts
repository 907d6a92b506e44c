import type { VerifierStep } from '@countersign/verify'
import { expect, test } from 'vitest'
import { findWorst } from './StatusMark.tsx'

type Statuses = Partial<Record<VerifierStep['id'], VerifierStep['status']>>

function markOf(statuses: Statuses, { isMock = false } = {}) {
  const steps = Object.entries(statuses).map(([id, status]) => ({ id, status, title: '', detail: '' }) as VerifierStep)
  return findWorst(steps, { isMock })
}

test.each<[string, Statuses]>([
  ['evidence', { inclusion: 'pass', collateral: 'skip', quote: 'skip', config: 'pass' }],
  ['a block', { format: 'pass', blocks: 'skip' }],
  ['an anchor', { quote: 'pass', measurement: 'skip' }],
  ['the rules of a vault', { statement: 'pass', 'vault-policy': 'skip' }],
  ['a bound of the time', { time: 'pass', 'time-bound': 'skip' }],
])('a group that misses %s does not carry the mark of what passed', (_, statuses) => {
  expect(markOf(statuses)).toBe('skip')
})

test.each<[string, Statuses]>([
  ['the CID of a file', { format: 'pass', cid: 'skip' }],
  ['an opening', { opening: 'skip', digest: 'skip', signature: 'skip', statement: 'pass', 'vault-rule': 'skip' }],
  ['a list of machines', { quote: 'pass', platform: 'skip' }],
  ['a list of chips', { 'coordinator-report': 'pass', 'coordinator-chip': 'skip', 'coordinator-revocation': 'skip' }],
  ['a log', { log: 'skip', transaction: 'skip', time: 'pass' }],
])('a group that was not given %s has passed', (_, statuses) => {
  expect(markOf(statuses)).toBe('pass')
})

test('a failure is worse than mock evidence, and that is worse than what is missing', () => {
  expect(markOf({ inclusion: 'pass', collateral: 'skip', quote: 'fail' }, { isMock: true })).toBe('fail')
  expect(markOf({ inclusion: 'pass', collateral: 'skip' }, { isMock: true })).toBe('mock')
  expect(markOf({ cid: 'skip' })).toBe('skip')
  expect(markOf({})).toBeUndefined()
})
