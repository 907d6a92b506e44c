import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { goldenVaults } from '../../packages/receipt/src/vaults.fake.ts'
import { createIssueTargets, createPolicyTargets } from './receiptV2Targets.ts'
import type { Target } from './sweep.ts'

/** Receipts of the same vaults as the golden ones, with the policies that they name: approved, scheduled, off the chain, and of addresses. */
export async function createVaultTargets(signedAt: Date): Promise<Target[]> {
  const service = createReceiptSimulator()
  const targets: Target[] = []
  for (const [kind, golden] of Object.entries(goldenVaults)) {
    const issue = await service.issueV2({ signedAt, treeSize: 3, leafIndex: 1, ...golden })
    const named = { name: `receipt v2 vault ${kind}`, service, issue }
    targets.push(...createIssueTargets(named), ...createPolicyTargets(named))
  }
  return targets
}
