import { createPolicy, type Policy } from '@countersign/policy'
import type { VaultBudgetInfo } from '@countersign/protocol'
import { type CreateAgentParameters, createAgent } from '@countersign/sdk/agent'
import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import { attestVault, createPasskey, createVault, type Vault } from '@countersign/sdk/vaults/client'
import { afterEach, expect, test } from 'vitest'
import { agent, toKey, token } from '../../../../packages/policy/test/policies.ts'
import { type BudgetProofOptions, createBudgetProof } from '../../../../packages/verify/test/budgetProof.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { button, installPasskeys } from '../../test/vaults/openVault.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'
import { writeCheckedOwner } from '../wallet/checkedOwner.ts'
import { toPolicy } from './template.ts'
import { toAgentSettings } from './toAgentSettings.ts'

const passkeys = installPasskeys()
afterEach(closeWallet)

const USDC = { chainId: 31337, address: token, symbol: 'USDC', decimals: 6, name: 'USD Coin' }
const DAY_S = 86_400
const nowS = () => Math.floor(Date.now() / 1000)

type OpenOptions = Partial<Omit<BudgetProofOptions, 'policy'>> & {
  /** Changes the service's answer. */
  change?: (answer: VaultBudgetInfo) => VaultBudgetInfo
}

/** The page of a vault: 10 USDC per day, and 100 in total. */
async function openBudget({ change = (answer) => answer, ...options }: OpenOptions = {}) {
  let policy: Policy | undefined
  let vault: Vault | undefined
  const given = { ...options }
  const prepare = async (service: TestService) => {
    const { approver } = await createPasskey({ name: 'Ada' })
    const terms = { template: 'budget', limitWei: null, feeWei: 0n, recipients: null, approvals: 1 } as const
    const budget = { token, limit: 10_000_000n, periodS: DAY_S, publicKey: agent.approver.publicKey }
    const log = { witnesses: [1, 2, 3].map(toKey), quorum: 2 }
    const context = { chainId: 31337, approvers: [approver], log, origin: 'log.example/1' }
    const daily = toPolicy({ ...terms, agent: budget }, context)
    const budgets = [...(daily.budgets ?? []), { chainId: 31337, token, limit: '100000000', periodS: 0 }]
    policy = createPolicy({ ...daily, budgets })
    vault = await createVault(new ServiceClient(service.config), policy)
  }
  const opened = await openWallet({
    path: '/vaults',
    prepare,
    config: { tokens: [USDC] },
    intercept: (url) =>
      url.endsWith('/budget') && policy !== undefined
        ? Promise.resolve(Response.json(change(createBudgetProof({ policy, timeS: nowS(), ...given }))))
        : undefined,
  })
  await opened.screen.getByRole('link', { name: /^0x/ }).click()
  await expect.element(opened.screen.getByRole('heading', { name: 'Budgets' })).toBeVisible()
  if (vault === undefined) throw new Error('no vault was made')
  return { ...opened, vault, set: (next: OpenOptions) => Object.assign(given, next) }
}

/** In the policy's order: the budget of the day has the shorter limit. */
const spent = [4_500_000n, 30_000_000n]

test('shows each budget as a bar, with the end of its period in UTC', async () => {
  const { screen } = await openBudget({ spent })
  const daily = screen.getByRole('meter', { name: '10 USDC per day' })
  await expect.element(daily).toHaveAttribute('aria-valuetext', '4.5 USDC spent, 5.5 USDC left')
  await expect.element(daily).toHaveAttribute('value', '45')
  const total = screen.getByRole('meter', { name: '100 USDC in total' })
  await expect.element(total).toHaveAttribute('aria-valuetext', '30 USDC spent, 70 USDC left')
  expect(screen.getByText(/^The next period starts on .* at 00:00 UTC\.$/).elements()).toHaveLength(1)
  await expect.element(screen.getByText(/^Your browser checked these amounts/)).toBeVisible()
  await expectAccessible()
})

test('shows that nothing has been counted yet', async () => {
  const { screen } = await openBudget({ change: (answer) => ({ ...answer, sequence: 0, proof: null }) })
  await expect.element(screen.getByText('According to the service, nothing has been counted yet.')).toBeVisible()
  await expect
    .element(screen.getByRole('meter', { name: '10 USDC per day' }))
    .toHaveAttribute('aria-valuetext', '0 USDC spent, 10 USDC left')
})

test.each<[string, OpenOptions]>([
  ['cosigned by too few witnesses', { witnesses: [1] }],
  ['of another log', { origin: 'log.example/2' }],
  ['of another state', { change: (answer) => ({ ...answer, proof: answer.proof && { ...answer.proof, row: 1 } }) }],
  ['that is missing', { change: (answer) => ({ ...answer, proof: null }) }],
])('shows no amounts with a proof %s, and says why', async (_, options) => {
  const { screen, set } = await openBudget({ spent, ...options })
  await expect.element(screen.getByText('The budget doesn’t match its proof')).toBeVisible()
  expect(screen.getByRole('meter').elements()).toHaveLength(0)
  await expectAccessible()
  if (options.change !== undefined) return
  set({ witnesses: [1, 2], origin: 'log.example/1' })
  await button(screen, 'Reload budget').click()
  await expect.element(screen.getByRole('meter', { name: '10 USDC per day' })).toBeInTheDocument()
})

test('shows no amounts of another vault, once this browser has verified the vault’s address', async () => {
  const { screen, service, vault, set } = await openBudget({ spent })
  await expect.element(screen.getByRole('meter', { name: '10 USDC per day' })).toBeInTheDocument()
  const { apiBaseUrl } = service.config
  const checked = { email: service.user.email, sentence: '', slug: '', keyId: 'a1'.repeat(16) }
  writeCheckedOwner({ apiBaseUrl, deposit: vault, email: service.user.email }, checked)
  set({ keyId: 'b2'.repeat(16) })
  await screen.getByRole('link', { name: 'Vaults', exact: true }).click()
  await screen.getByRole('link', { name: /^0x/ }).click()
  await expect.element(screen.getByText('The budget doesn’t match its proof')).toBeVisible()
  expect(screen.getByRole('meter').elements()).toHaveLength(0)
})

test('warns that amounts may be old', async () => {
  const { screen } = await openBudget({ spent, timeS: nowS() - 3_600 })
  await expect.element(screen.getByText('These amounts may be old')).toBeVisible()
  await expectAccessible()
})

test('revokes an agent only after a confirmation, and shows it once the service has answered', async () => {
  const { screen, service, vault, set } = await openBudget({ spent })
  const revoked = () => service.requests.filter((request) => request === 'POST /vaults/:address/revoke')
  await button(screen, /^Revoke agent \S/).click()
  await expect.element(screen.getByRole('heading', { name: /^Revoke agent/ })).toHaveFocus()
  await expectAccessible()
  await button(screen, 'Cancel').click()
  expect(revoked()).toHaveLength(0)

  await button(screen, /^Revoke agent \S/).click()
  service.failNext('POST /vaults/:address/revoke', { code: 'budget_unavailable' })
  await button(screen, /^Revoke agent$/).click()
  await expect.element(screen.getByText('The vault’s budgets can’t be used now')).toBeVisible()
  await expect.element(screen.getByText('The agent may not be revoked yet. Try again.')).toBeVisible()
  expect(screen.getByText('Revoked', { exact: true }).elements()).toHaveLength(0)
  await expectAccessible()

  set({ revoked: 1 << vault.policy.approvers.findIndex(({ type }) => type === 'key') })
  await button(screen, /^Revoke agent$/).click()
  await expect.element(screen.getByText('Revoked', { exact: true })).toBeVisible()
  await expect.element(screen.getByText(/is revoked\. The vault’s witnesses have cosigned it\./)).toBeVisible()
  await expect.element(screen.getByRole('link', { name: 'View proof' })).toBeVisible()
  await expectAccessible()
  expect(revoked()).toHaveLength(2)
})

test('revokes an agent with a passkey, also after the session has ended', async () => {
  const { screen, service } = await openBudget()
  await button(screen, /^Revoke agent \S/).click()
  service.signOut()
  passkeys().cancelNext()
  await button(screen, 'Revoke with passkey').click()
  await expect.element(screen.getByText('Passkey cancelled')).toBeVisible()
  await button(screen, 'Revoke with passkey').click()
  await expect.poll(() => service.proofs.map(({ kind }) => kind)).toEqual(['revocation'])
})

test('lists the payments that agents approved without a session, and no others', async () => {
  const { screen, service, vault } = await openBudget()
  const client = new ServiceClient(service.config)
  await attestVault(client, vault)
  const settings = toAgentSettings(vault, { apiBaseUrl: service.config.apiBaseUrl, key: '09'.repeat(32) })
  const account = createAgent(JSON.parse(settings) as CreateAgentParameters)
  const members = 'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce'
  const types = members.split(',').map((member) => {
    const [type = '', name = ''] = member.split(' ')
    return { name, type }
  })
  await account.signTypedData({
    domain: { name: 'USD Coin', version: '2', chainId: 31337, verifyingContract: token },
    types: { TransferWithAuthorization: types },
    primaryType: 'TransferWithAuthorization',
    message: {
      from: vault.address,
      to: token,
      value: 5n,
      validAfter: 0n,
      validBefore: BigInt(nowS() + 60),
      nonce: `0x${'01'.repeat(32)}`,
    },
  })
  for (const { slug } of service.proofs) service.advanceProof(slug)
  await screen.getByRole('link', { name: 'Vaults', exact: true }).click()
  await screen.getByRole('link', { name: /^0x/ }).click()
  await screen.getByText('Payments by agents').click()
  await expect.element(screen.getByText(/^Signed payment, amount private/)).toBeVisible()
  await expect.element(screen.getByText(/^just now, by fd172438…e9f618/)).toBeVisible()
  expect(screen.getByRole('link', { name: 'View proof' }).elements()).toHaveLength(1)
  await expectAccessible()
})
