import { expect, test } from 'vitest'
import { compareAnswer } from './compareAnswer.ts'
import type { Outcome } from './protocol.ts'

const failed: Outcome = { verdict: 'failed', steps: { format: 'pass', cid: 'skip', digest: 'fail' } }
const counted: Outcome = {
  verdict: 'failed',
  steps: { 'vault-budget': 'fail' },
  codes: { 'vault-budget': 'budget_time' },
}
const mock: Outcome = { verdict: 'mock', steps: { release: 'pass', time: 'pass' } }

test.each<[string, Outcome, Outcome, string]>([
  ['the same', failed, failed, 'passed'],
  ['without skips', failed, { verdict: 'failed', steps: { format: 'pass', digest: 'fail' } }, 'passed'],
  ['with later steps', failed, { verdict: 'failed', steps: { ...failed.steps, release: 'fail' } }, 'passed'],
  ['an earlier failure', failed, { verdict: 'failed', steps: { ...failed.steps, cid: 'fail' } }, 'failed'],
  ['a later failure', failed, { verdict: 'failed', steps: { format: 'pass', signature: 'fail' } }, 'failed'],
  ['another verdict', failed, { ...failed, verdict: 'incomplete' }, 'failed'],
  ['an error instead', failed, { error: 'car_malformed' }, 'failed'],
  ['the same error', { error: 'car_malformed' }, { error: 'car_malformed' }, 'passed'],
  ['another error', { error: 'car_malformed' }, { error: 'car_mismatch' }, 'failed'],
  ['a missing code', counted, { verdict: 'failed', steps: counted.steps }, 'failed'],
  ['another code', counted, { ...counted, codes: { 'vault-budget': 'budget_late' } }, 'failed'],
  ['an unchecked step that passes', mock, { ...mock, steps: { release: 'unchecked', time: 'pass' } }, 'passed'],
  ['an unchecked step, and another failure', mock, { verdict: 'failed', steps: { release: 'unchecked' } }, 'failed'],
  [
    'the failing step unchecked',
    failed,
    { verdict: 'mock', steps: { format: 'pass', digest: 'unchecked' } },
    'unchecked',
  ],
])('compares an answer: %s', (_, expected, actual, result) => {
  expect(compareAnswer(expected, actual).result).toBe(result)
})
