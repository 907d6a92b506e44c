import { createPolicy } from '@countersign/policy'
import type { PolicyRefusal, SignItemError } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { toItemError } from './vaultRules.ts'

const rule = {
  kind: 'transaction',
  chainIds: 'any',
  to: 'any',
  maxFeeWei: '100000',
  approvals: 0,
  approvers: 'any',
} as const
const rules = createPolicy({ version: 1, log: null, approvers: [], rules: [{ ...rule, maxValueWei: '1' }] })
const vault = { policy: { hash: '', text: '' }, rules }
const above = { rule: 0, reasons: [{ code: 'value_above_max' as const }] }
const refused = (rules: PolicyRefusal['rules']): SignItemError => ({
  error: 'policy_refused',
  details: { reasons: ['nonce_not_due'], rules, nearest: 0 },
})

test.each<[SignItemError, string]>([
  [{ error: 'invalid_request' }, 'internal'],
  [{ error: 'invalid_tx_metadata' }, 'invalid_tx_metadata'],
  [{ error: 'digest_mismatch' }, 'digest_mismatch'],
  [{ error: 'grant_invalid' }, 'grant_invalid'],
  [{ error: 'session_expired' }, 'session_expired'],
  [{ error: 'key_binding_mismatch' }, 'key_binding_mismatch'],
  [{ error: 'quote_unavailable' }, 'enclave_unavailable'],
  [{ error: 'entropy_refused' }, 'entropy_unavailable'],
  [{ error: 'entropy_used' }, 'entropy_unavailable'],
  [{ error: 'entropy_memory_full' }, 'enclave_unavailable'],
  [{ error: 'policy_unknown' }, 'enclave_unavailable'],
  [{ error: 'policy_not_supported' }, 'policy_refused'],
  [{ error: 'approvals_missing', missing: 2 }, 'approvals_missing'],
  [{ error: 'budget_time' }, 'budget_time'],
  [{ error: 'budget_unavailable' }, 'budget_unavailable'],
])('$error → %s', (error, code) => {
  expect(toItemError(error, { vault })).toMatchObject({ code })
})

test('an approval is named by its index', () => {
  expect(toItemError({ error: 'approval_invalid', index: 0, reason: 'approval_expired' }, { vault })).toMatchObject({
    code: 'approval_invalid',
    details: 'approvals[0]: approval_expired',
  })
})

test('an approval of a revoked key is named, too', () => {
  expect(toItemError({ error: 'approval_invalid', index: 1, reason: 'approver_revoked' }, { vault })).toMatchObject({
    code: 'approval_invalid',
    details: 'approvals[1]: approver_revoked',
  })
})

test('a budget is named with what it still allows', () => {
  const left = '9'.repeat(77)
  expect(toItemError({ error: 'budget_exceeded', budget: 2, left }, { vault })).toMatchObject({
    code: 'budget_exceeded',
    details: `budgets[2] allows ${left} more`,
    exceeded: { budget: 2, left },
  })
})

describe('a rejection by the rules', () => {
  test('has the result of each rule', () => {
    expect(toItemError(refused([above]), { vault })).toMatchObject({
      code: 'policy_refused',
      refusal: { reasons: ['nonce_not_due'], rules: [above], nearest: 0 },
    })
  })

  test('allows a retry of a due payment if the sample is older than the due time', () => {
    expect(toItemError(refused([above, { rule: 1, reasons: [] }]), { vault })).toMatchObject({
      code: 'entropy_unavailable',
    })
  })
})
