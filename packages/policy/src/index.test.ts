import { expect, test } from 'vitest'
import * as policy from './index.ts'

test('exports', () => {
  expect(Object.keys(policy).sort()).toMatchInlineSnapshot(`
    [
      "MAX_AGENT_APPROVAL_MS",
      "MAX_APPROVAL_MS",
      "MAX_POLICY_BYTES",
      "VaultPolicyError",
      "X402_SPENDERS",
      "assertApprovals",
      "assertPolicy",
      "assertPolicyForm",
      "canSignOnChains",
      "canTellTime",
      "checkApprovals",
      "checkPolicy",
      "countSpends",
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
      "parseStateHex",
      "readSpend",
      "toDueMs",
      "toPolicyBytes",
      "toStateHex",
      "verifyEs256",
      "verifySample",
    ]
  `)
})
