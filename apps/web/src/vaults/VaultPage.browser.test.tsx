import { toCanonicalJson } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import type { Vault } from '@countersign/sdk/vaults'
import { sha256 } from 'viem'
import { afterEach, expect, test } from 'vitest'
import { closeWallet, openWallet } from '../wallet/openWallet.fake.tsx'

afterEach(closeWallet)

test('rules with a key that is none are not shown as those of a vault', async () => {
  const rule = {
    kind: 'transaction',
    chainIds: [1],
    to: 'any',
    maxValueWei: '5',
    maxFeeWei: '5',
    approvals: 0,
  } as const
  const policy = { version: 1, log: { witnesses: ['ff'.repeat(32)], quorum: 1 }, approvers: [], rules: [rule] } as const
  const bytes = toCanonicalJson(policy)
  const vault: Vault = {
    ...{ address: `0x${'ab'.repeat(20)}`, policy, createdAt: new Date(0).toISOString() },
    ...{ policyHash: sha256(bytes).slice(2), policyCid: toCid(bytes) },
  }
  const { screen } = await openWallet({
    path: `/vaults/${vault.address}`,
    intercept: (url) => (url.endsWith('/vaults') ? Promise.resolve(Response.json({ vaults: [vault] })) : undefined),
  })
  await expect.element(screen.getByText('Something else answered in place of the service')).toBeVisible()
  await expect.element(screen.getByText('Rules of this vault')).not.toBeInTheDocument()
})
