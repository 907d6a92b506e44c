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
])('does not mark a group as passed if it lacks %s', (_, statuses) => {
  expect(markOf(statuses)).toBe('skip')
})

test.each<[string, Statuses]>([
  ['the CID of a file', { format: 'pass', cid: 'skip' }],
  ['an opening', { opening: 'skip', digest: 'skip', signature: 'skip', statement: 'pass', 'vault-rule': 'skip' }],
  ['a list of machines', { quote: 'pass', platform: 'skip' }],
  ['a list of chips', { 'coordinator-report': 'pass', 'coordinator-chip': 'skip', 'coordinator-revocation': 'skip' }],
  ['a log', { log: 'skip', transaction: 'skip', time: 'pass' }],
])('marks a group as passed without %s', (_, statuses) => {
  expect(markOf(statuses)).toBe('pass')
})

test('ranks failures above mock evidence, and mock evidence above missing steps', () => {
  expect(markOf({ inclusion: 'pass', collateral: 'skip', quote: 'fail' }, { isMock: true })).toBe('fail')
  expect(markOf({ inclusion: 'pass', collateral: 'skip' }, { isMock: true })).toBe('mock')
  expect(markOf({ cid: 'skip' })).toBe('skip')
  expect(markOf({})).toBeUndefined()
})
