import { createTestPasskeys } from '@countersign/sdk/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { confirm } from '../send/sendForm.fake.ts'
import { expectAccessible } from '../shell/expectAccessible.fake.ts'
import { closeWallet } from '../wallet/openWallet.fake.tsx'
import { button, openVault, pay } from './openVault.fake.ts'

let uninstall: (() => void) | undefined
beforeEach(() => {
  uninstall = createTestPasskeys().install()
})
afterEach(() => {
  uninstall?.()
  closeWallet()
})

test('a payment whose outcome is not known stays in sight until somebody has looked, also after a change and a reload', async () => {
  const { screen, service, reload } = await openVault()
  const notice = (on: typeof screen) => on.getByText('A payment that was signed before may still go through')
  service.failNext('eth_sendRawTransaction', { code: -32000, message: 'upstream timed out' })
  await pay(screen, '0.05')
  await confirm(screen).click()
  await expect.element(screen.getByText('It is not known whether the transaction was sent')).toBeVisible()
  expect(notice(screen).query()).toBeNull()
  await button(screen, 'Change').click()
  await expect.element(notice(screen)).toBeVisible()
  await pay(screen, '0.05')
  await expect.element(confirm(screen)).toBeVisible()
  await expect.element(notice(screen)).toBeVisible()
  await expectAccessible()
  const again = await reload()
  await expect.element(confirm(again)).toBeVisible()
  await expect.element(notice(again)).toBeVisible()
  await button(again, 'I have looked').click()
  await expect.element(notice(again)).not.toBeInTheDocument()
})
