import { expect, test } from 'vitest'
import * as policy from './index.ts'

test('exports', () => {
  expect(Object.keys(policy).sort()).toMatchInlineSnapshot(`
    [
      "MAX_APPROVAL_MS",
      "MAX_POLICY_BYTES",
      "VaultPolicyError",
      "assertApprovals",
      "assertPolicy",
      "assertPolicyForm",
      "canSignOnChains",
      "canTellTime",
      "checkApprovals",
      "checkPolicy",
      "createPolicy",
      "describeApprovalsFault",
      "describePolicy",
      "describeRefusal",
      "hashApprovals",
      "hashPolicy",
      "isDue",
      "mayTakeDataFee",
      "normalisePolicy",
      "parsePolicy",
      "toDueMs",
      "toPolicyBytes",
      "verifyEs256",
      "verifySample",
    ]
  `)
})
