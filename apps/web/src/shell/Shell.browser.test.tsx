import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import { createPasskey, createVault, prepare } from '@countersign/sdk/vaults/client'
import { afterEach, expect, test } from 'vitest'
import { userEvent } from 'vitest/browser'
import { button, installPasskeys } from '../../test/vaults/openVault.ts'
import { closeWallet, openWallet } from '../../test/wallet/openWallet.tsx'
import { toApproveUrl } from '../vaults/approvalText.ts'

installPasskeys()
afterEach(closeWallet)

test('the skip link focuses the content and keeps an approval', async () => {
  let fragment = ''
  const make = async (service: TestService) => {
    const client = new ServiceClient(service.config)
    const { approver } = await createPasskey({ name: 'Ada' })
    const rules = [{ kind: 'message', approvals: 1, approvers: 'any' }] as const
    const vault = await createVault(client, { version: 1, log: null, approvers: [approver], rules })
    const prepared = await prepare(client, vault, { kind: 'message', message: 'Ada owes Bob a coffee' })
    fragment = new URL(toApproveUrl(prepared, window.location.origin)).hash
  }
  const { screen } = await openWallet({ path: '/approve', prepare: make })
  window.location.hash = fragment
  await button(screen, 'Approve with passkey').click()
  const approved = screen.getByRole('heading', { name: 'Approved' })
  await expect.element(approved).toBeVisible()
  const link = screen.getByRole('link', { name: 'Skip to content' })
  ;(link.element() as HTMLElement).focus()
  await userEvent.keyboard('{Enter}')
  await expect.element(screen.getByRole('main')).toHaveFocus()
  expect(window.location.hash).toBe(fragment)
  await expect.element(approved).toBeVisible()
  await userEvent.tab()
  await expect.element(screen.getByRole('main').getByText('Vault rules')).toHaveFocus()
})
