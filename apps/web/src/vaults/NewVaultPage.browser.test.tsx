import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import { createVault } from '@countersign/sdk/vaults/client'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { expectAccessible } from '../shell/expectAccessible.fake.ts'
import { closeWallet, openWallet } from '../wallet/openWallet.fake.tsx'
import { button, installPasskeys } from './openVault.fake.ts'
import { toPolicy } from './template.ts'

installPasskeys()
afterEach(closeWallet)

/** The base point of Ed25519: a key of the right form. */
const ENTROPY_KEY = '5866666666666666666666666666666666666666666666666666666666666666'

test('a schedule that would begin by a wrong clock is not made; with the clock set right it is', async () => {
  const prepare = async (service: TestService) => {
    const terms = { template: 'limit', limitWei: 1n, feeWei: 1n, recipients: null, approvals: 0, agent: null } as const
    const context = { chainId: 31337, approvers: [], time: [], startsAtMs: 0 }
    await createVault(new ServiceClient(service.config), toPolicy(terms, context))
  }
  const config = { trust: { entropyKeys: [ENTROPY_KEY] } }
  const { screen, service } = await openWallet({ path: '/vaults/new', prepare, config })
  await screen.getByRole('radio', { name: /^An agent with a schedule/ }).click()
  await screen.getByLabelText('Each payment at most, in ETH').fill('0.1')
  await screen.getByLabelText('Payments', { exact: true }).fill('1')
  const refuge = screen.getByLabelText('Second vault, as a refuge')
  await expect.poll(() => refuge.element().querySelectorAll('option').length).toBe(2)
  await refuge.selectOptions(refuge.element().querySelectorAll('option')[1] as HTMLOptionElement)
  await button(screen, 'Make a passkey').click()
  const made = () => service.requests.filter((request) => request === 'POST /vaults').length
  const before = made()

  const clock = vi.spyOn(Date, 'now')
  onTestFinished(() => clock.mockRestore())
  const ahead = Date.now() + 20 * 86_400_000
  clock.mockImplementation(() => ahead)
  await button(screen, 'Read the rules').click()
  await expect.element(button(screen, 'Make it without a spare')).toBeVisible()
  clock.mockRestore()
  await button(screen, 'Make it without a spare').click()
  await expect.element(screen.getByRole('alert').getByText(/this schedule would not begin now/)).toBeVisible()
  await expectAccessible()
  expect(made()).toBe(before)

  await button(screen, 'Read the rules').click()
  await button(screen, 'Make it without a spare').click()
  await expect.element(screen.getByRole('heading', { name: 'The vault is made' })).toBeVisible()
})
