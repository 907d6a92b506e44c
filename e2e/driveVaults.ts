import { readFile } from 'node:fs/promises'
import { type Policy, parsePolicy } from '@countersign/policy'
import type { Page } from 'playwright'
import { STRANGER } from './driveWeb.ts'

/** Gives a page its own authenticator, like a phone's or laptop's. It verifies the user at once, without a dialog. */
export async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/** Creates a passkey on `/passkey`. Returns its text for the device that creates the vault. */
export async function makePasskeyText(page: Page, webUrl: string): Promise<string> {
  await page.goto(`${webUrl}/passkey`)
  await page.getByRole('button', { name: 'Create passkey' }).click()
  await page.getByText('Passkey created.').waitFor()
  return (await page.locator('[data-text="approver"]').textContent()) ?? ''
}

export type NewVault = {
  template: RegExp
  limit: string
  /** The text of a passkey from another device. */
  brought?: string
}

export type MadeVault = { address: string; policy: Policy }

/** Creates a vault from the list of vaults. Uses one passkey of this page and, if given, one from another device. */
export async function makeVault(page: Page, { template, limit, brought }: NewVault): Promise<MadeVault> {
  await page.getByRole('link', { name: 'Vaults', exact: true }).click()
  await page.getByRole('link', { name: 'Create vault' }).click()
  await page.getByRole('radio', { name: template }).click()
  await page
    .getByLabel(/in ETH$/)
    .first()
    .fill(limit)
  await page.getByRole('button', { name: 'Create passkey' }).click()
  await page.getByText('Add a spare passkey').waitFor()
  if (brought !== undefined) {
    await page.getByText('Add a passkey from another device or person').click()
    await page.getByLabel('Passkey text').fill(brought)
    await page.getByRole('button', { name: 'Add passkey' }).click()
    await page.getByText('Passkey 2, added').waitFor()
  }
  await page.getByRole('button', { name: 'Review rules' }).click()
  await page.getByText('These rules can never change.').waitFor()
  await page.getByRole('button', { name: /^Create (vault|without a spare)$/ }).click()
  await page.getByRole('heading', { name: 'Vault created' }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download rules' }).click(),
  ])
  const policy = parsePolicy(await readFile(await download.path()))
  await page.getByRole('link', { name: 'Open vault' }).click()
  await page.getByRole('heading', { name: 'Vault address' }).waitFor()
  return { address: new URL(page.url()).pathname.split('/').at(-1) ?? '', policy }
}

/** Fills in a payment up to its review. */
export async function writePayment(page: Page, amount: string): Promise<void> {
  await page.getByLabel('To', { exact: true }).fill(STRANGER)
  await page.getByLabel('Amount in ETH').fill(amount)
  await page.getByRole('button', { name: 'Review' }).click()
}

/** Returns the slug of the proof. */
export async function sendReviewed(page: Page, amount: string): Promise<string> {
  await page.getByRole('button', { name: `Sign and send ${amount} ETH` }).click()
  const sent = page.getByRole('heading', { name: `Sent ${amount} ETH` })
  await sent.or(page.getByRole('alert')).waitFor()
  if (!(await sent.isVisible())) throw new Error(`not sent: ${await page.getByRole('alert').textContent()}`)
  const href = await page.getByRole('link', { name: 'View proof', exact: true }).getAttribute('href')
  return href?.split('/').at(-1) ?? ''
}

/** Opens a payment's link on another device and approves it. Returns the approval's text. */
export async function approveElsewhere(page: Page, link: string, amount: string): Promise<string> {
  await page.goto(link)
  await page.getByRole('heading', { name: 'Do you approve this?' }).waitFor()
  await page.getByText(`${amount} ETH`, { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Approve with passkey' }).click()
  await page.getByRole('heading', { name: 'Approved' }).waitFor()
  return (await page.locator('[data-text="approval"]').textContent()) ?? ''
}
