import { createPolicy, type Policy } from '@countersign/policy'
import { type Approval, fromHex, type Hex } from '@countersign/protocol'
import type { TestUser } from '@countersign/testing/stack'
import { createVault } from '../createVault.ts'
import type { Query } from '../openQuery.ts'
import { createQuickPasskey } from '../quickPasskey.ts'

/** A vault that a user signs with, and who approves. */
export type LoadedVault = { address: Hex; approve(digest: Hex): Approval[] }

const APPROVAL_MS = 12 * 3_600_000

const passkey = createQuickPasskey({ seed: 1, rpId: 'vault.example' })

/** Rules that allow all that is measured, each signature with so many approvals. */
function toPolicy(approvals: 0 | 1): Policy {
  const rule = { kind: 'transaction', chainIds: 'any', to: 'any', maxFeeWei: '100000', maxValueWei: '1' } as const
  const approvers = approvals === 0 ? [] : [passkey.approver]
  return createPolicy({ version: 1, log: null, approvers, rules: [{ ...rule, approvals }] })
}

/** A vault for each of the users, all under the same rules. */
export async function createVaults(
  deps: { users: readonly TestUser[]; query: Query },
  approvals: 0 | 1,
): Promise<LoadedVault[]> {
  const policy = toPolicy(approvals)
  const vaults: LoadedVault[] = []
  for (const { post } of deps.users) {
    const { address, policyHash } = await createVault({ post, query: deps.query }, policy)
    const facts = { vaultAddress: address, policyHash: fromHex(policyHash), kind: 'transaction' } as const
    vaults.push({
      address,
      approve(digest) {
        if (approvals === 0) return []
        const expiresMs = Date.now() + APPROVAL_MS
        return [passkey.approve({ ...facts, digest: fromHex(digest.slice(2)), expiresMs }, 0)]
      },
    })
  }
  return vaults
}
