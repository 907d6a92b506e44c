import { approve, parsePrepared } from '@countersign/sdk/vaults/client'
import { afterEach, expect, test } from 'vitest'
import { confirm, isLeavingHeld } from '../../test/send/sendForm.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { button, hrefOf, installPasskeys, openVault, pay, signings } from '../../test/vaults/openVault.ts'
import { closeWallet } from '../../test/wallet/openWallet.tsx'
import { readPreparedText } from './approvalText.ts'

const passkeys = installPasskeys()
afterEach(closeWallet)

/** The next passkey prompt stays open until the test completes it. */
function holdPrompt() {
  const { credentials } = navigator
  const get = credentials.get.bind(credentials)
  const touched = Promise.withResolvers<void>()
  let answered: ReturnType<typeof get> | undefined
  const prompt = {
    signal: undefined as AbortSignal | undefined,
    async touch() {
      touched.resolve()
      await answered
    },
  }
  credentials.get = (options) => {
    credentials.get = get
    prompt.signal = options?.signal
    answered = touched.promise.then(() => get(options))
    return answered
  }
  return prompt
}

test('keeps the notice about an unknown outcome until it is dismissed, also after changes and a reload', async () => {
  const { screen, service, reload } = await openVault()
  const notice = (on: typeof screen) => on.getByText('An earlier payment may still go through')
  service.failNext('eth_sendRawTransaction', { code: -32000, message: 'upstream timed out' })
  await pay(screen, '0.05')
  await confirm(screen).click()
  await expect.element(screen.getByText('The transaction may have been sent')).toBeVisible()
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
  await button(again, 'I’ve checked').click()
  await expect.element(notice(again)).not.toBeInTheDocument()
})

test('shows progress and result to a visitor who left the page during signing', async () => {
  const held = Promise.withResolvers<void>()
  let isConfirmed = false
  const intercept = (url: string, pass: () => Promise<Response>) =>
    isConfirmed && url.includes('/sign/') ? held.promise.then(pass) : undefined
  const { screen, service, before } = await openVault({ intercept })
  await pay(screen, '0.05')
  await expect.element(confirm(screen)).toBeVisible()
  isConfirmed = true
  await confirm(screen).click()
  await expect.element(screen.getByText(/^Signing and sending/).first()).toBeVisible()
  await screen.getByRole('link', { name: 'Verify', exact: true }).click()
  await expect.element(screen.getByRole('heading', { level: 1, name: /verify/i })).toBeVisible()
  expect(isLeavingHeld()).toBe(true)
  await screen.getByRole('link', { name: 'Vaults', exact: true }).click()
  await screen.getByRole('link', { name: /Up to 0\.1/ }).click()
  await expect.element(screen.getByText(/^Signing and sending/).first()).toBeVisible()
  expect(confirm(screen).query()).toBeNull()
  held.resolve()
  await expect.element(screen.getByRole('heading', { name: 'Sent 0.05 ETH' })).toBeVisible()
  expect(signings(service)).toHaveLength(before + 1)
  expect(isLeavingHeld()).toBe(false)
})

test('keeps a payment that another tab has prepared', async () => {
  const { screen } = await openVault()
  await pay(screen, '0.05')
  await expect.element(confirm(screen)).toBeVisible()
  const prepared = { ...localStorage }
  await confirm(screen).click()
  await expect.element(screen.getByRole('heading', { name: 'Sent 0.05 ETH' })).toBeVisible()
  expect({ ...localStorage }).not.toEqual(prepared)
  Object.assign(localStorage, prepared)
  await button(screen, 'Send another').click()
  await expect.element(confirm(screen)).toBeVisible()
  expect({ ...localStorage }).toEqual(prepared)
})

test('ignores a passkey that is used after the payment was changed', async () => {
  const { screen } = await openVault()
  await pay(screen, '0.2')
  const prompt = holdPrompt()
  await button(screen, 'Approve with passkey').click()
  await button(screen, 'Change').click()
  expect(prompt.signal?.aborted).toBe(true)
  await pay(screen, '0.3')
  await expect.element(screen.getByText('0.3 ETH', { exact: true })).toBeVisible()
  await prompt.touch()
  await button(screen, 'Approve with passkey').click()
  await confirm(screen).click()
  await expect.element(screen.getByRole('heading', { name: 'Sent 0.3 ETH' })).toBeVisible()
})

test('counts an approval that is pasted during a passkey prompt', async () => {
  const { screen } = await openVault({ approvals: 2 })
  await pay(screen, '0.2')
  const prompt = holdPrompt()
  await button(screen, 'Approve with passkey').click()
  await screen.getByText('Approve on another device').click()
  const prepared = parsePrepared(readPreparedText(await hrefOf(screen, 'Approval link')))
  const [credentialId = ''] = passkeys().credentialIds
  const elsewhere = await approve(prepared, { credentials: [{ credentialId }] })
  await screen.getByLabelText('Approval text').fill(JSON.stringify(elsewhere))
  await button(screen, 'Add approval').click()
  await expect.element(screen.getByText(/^1 of 2 approvals/)).toBeVisible()
  await prompt.touch()
  await expect.element(screen.getByText(/^2 of 2 approvals/)).toBeVisible()
})
