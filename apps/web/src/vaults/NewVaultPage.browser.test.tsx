import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import { createVault, listVaults } from '@countersign/sdk/vaults/client'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { toKey } from '../../../../packages/policy/test/policies.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { button, installPasskeys } from '../../test/vaults/openVault.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'
import { toPolicy } from './template.ts'

const passkeys = installPasskeys()
afterEach(closeWallet)

const FRIEND = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const WITNESSES = [1, 2, 3].map(toKey)
/** The base point of Ed25519: a well-formed key. */
const ENTROPY_KEY = '5866666666666666666666666666666666666666666666666666666666666666'

test('rejects a schedule if the clock is wrong, and accepts it once the clock is right', async () => {
  const prepare = async (service: TestService) => {
    const terms = { template: 'limit', limitWei: 1n, feeWei: 1n, recipients: null, approvals: 0, agent: null } as const
    const context = { chainId: 31337, approvers: [], log: null, time: [], startsAtMs: 0 }
    await createVault(new ServiceClient(service.config), toPolicy(terms, context))
  }
  const config = { trust: { entropyKeys: [ENTROPY_KEY] } }
  const { screen, service } = await openWallet({ path: '/vaults/new', prepare, config })
  await screen.getByRole('radio', { name: /^Agent with a schedule/ }).click()
  await screen.getByLabelText('Maximum per payment, in ETH').fill('0.1')
  await screen.getByLabelText('Payments', { exact: true }).fill('1')
  const refuge = screen.getByLabelText('Second vault', { exact: true })
  await expect.poll(() => refuge.element().querySelectorAll('option').length).toBe(2)
  await refuge.selectOptions(refuge.element().querySelectorAll('option')[1] as HTMLOptionElement)
  await button(screen, 'Create passkey').click()
  const made = () => service.requests.filter((request) => request === 'POST /vaults').length
  const before = made()

  const clock = vi.spyOn(Date, 'now')
  onTestFinished(() => clock.mockRestore())
  const ahead = Date.now() + 20 * 86_400_000
  clock.mockImplementation(() => ahead)
  await button(screen, 'Review rules').click()
  await expect.element(button(screen, 'Create without a spare')).toBeVisible()
  clock.mockRestore()
  await button(screen, 'Create without a spare').click()
  await expect.element(screen.getByRole('alert').getByText(/clock differs/)).toBeVisible()
  await expectAccessible()
  expect(made()).toBe(before)

  await button(screen, 'Review rules').click()
  await button(screen, 'Create without a spare').click()
  await expect.element(screen.getByRole('heading', { name: 'Vault created' })).toBeVisible()
})

test('creates no passkey for rules that would be rejected', async () => {
  const { screen } = await openWallet({ path: '/vaults/new' })
  await screen.getByRole('radio', { name: /^List of addresses/ }).click()
  await screen.getByLabelText('Each payment needs').selectOptions('one passkey')
  const list = screen.getByLabelText('Allowed recipients')
  for (const address of ['', FRIEND.replace('C8', 'c8')]) {
    await list.fill(address)
    await button(screen, 'Create passkey').click()
    await expect.element(list).toHaveAttribute('aria-invalid', 'true')
    await expect.element(list).toHaveFocus()
  }
  expect(passkeys().credentialIds).toHaveLength(0)
  // The format in which people copy addresses.
  await list.fill(FRIEND)
  await button(screen, 'Create passkey').click()
  await expect.element(screen.getByText(/^Passkey 1, created here/)).toBeVisible()
})

test.each([
  ['requires three witnesses and shows a warning', WITNESSES, 2],
  ['does not require two witnesses', WITNESSES.slice(0, 2), 2],
])('before the vault is created: %s', async (_, witnesses, quorum) => {
  const trust = { log: { witnesses, quorum } }
  const { screen, service } = await openWallet({ path: '/vaults/new', config: { trust } })
  await screen.getByRole('radio', { name: /^Limit per payment/ }).click()
  await screen.getByLabelText('Maximum per payment, in ETH').fill('0.1')
  await button(screen, 'Review rules').click()
  await expect.element(button(screen, 'Create vault')).toBeVisible()
  const isLogged = witnesses.length >= 3
  expect(screen.getByText('Without its witnesses, this vault is locked permanently').elements()).toHaveLength(
    isLogged ? 1 : 0,
  )
  await expectAccessible()
  expect(service.requests).not.toContain('POST /vaults')
  await button(screen, 'Create vault').click()
  await expect.element(screen.getByRole('heading', { name: 'Vault created' })).toBeVisible()
  const [vault] = await listVaults(new ServiceClient(service.config))
  expect(vault?.policy.log).toEqual(isLogged ? { witnesses: witnesses.toSorted(), quorum } : null)
})
