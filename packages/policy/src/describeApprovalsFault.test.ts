import { expect, test } from 'vitest'
import { describeApprovalsFault } from './describeApprovalsFault.ts'

test('describes a fault of approvals in a sentence that counts from one', () => {
  const say = describeApprovalsFault
  expect(say({ valid: false, reason: 'challenge_mismatch', index: 1 })).toBe(
    'Approval 2 is invalid: it is for another signature.',
  )
  expect(say({ valid: false, reason: 'approvals_missing', missing: 1 })).toBe(
    'Approvals are missing: 1 more is needed.',
  )
  expect(say({ valid: false, reason: 'approvals_missing', missing: 2 })).toBe(
    'Approvals are missing: 2 more are needed.',
  )
  expect(say({ valid: false, reason: 'approvals_malformed' })).toBe('The approvals are malformed.')
})
