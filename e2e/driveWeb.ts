import { readFile } from 'node:fs/promises'
import { type Opening, parseOpening } from '@countersign/protocol'
import axe from 'axe-core'
import type { Page } from 'playwright'

/** A recipient: one of hardhat's development accounts. */
export const STRANGER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

/** Goes to the local provider's page. */
export async function startSignIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Continue with Local provider' }).click()
  await page.getByRole('heading', { name: 'Who are you?' }).waitFor()
}

export async function signIn(page: Page, name: 'Alice' | 'Bob'): Promise<void> {
  await startSignIn(page)
  await page.getByRole('link', { name: `Sign in as ${name}`, exact: true }).click()
  await page.getByRole('heading', { name: 'Your address' }).waitFor()
  await page.getByText('This page checked: this address belongs to').waitFor()
}

export async function fund(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Get test ETH' }).click()
  await page.getByText('The faucet sent 1 ETH.').waitFor()
}

/** Fills in a payment up to its review. */
export async function review(page: Page, amount: string): Promise<void> {
  await page.getByLabel('To', { exact: true }).fill(STRANGER)
  await page.getByLabel('Amount in ETH').fill(amount)
  await page.getByRole('button', { name: 'Review' }).click()
  await page.getByRole('button', { name: `Sign and send ${amount} ETH` }).waitFor()
}

/** Returns the slug of the proof. */
export async function send(page: Page, amount: string): Promise<string> {
  await review(page, amount)
  await page.getByRole('button', { name: `Sign and send ${amount} ETH` }).click()
  await page.getByRole('heading', { name: `Sent ${amount} ETH` }).waitFor()
  const href = await page.getByRole('link', { name: 'View proof' }).getAttribute('href')
  return href?.split('/').at(-1) ?? ''
}

/** The browser's results, once the proof is complete and every step has run. */
export async function waitForVerdict(page: Page): Promise<string | null> {
  // In a closed group, because nothing in it failed.
  await page.locator('[data-step="event"][data-status="pass"]').waitFor({ state: 'attached' })
  return page.locator('section[data-verdict]').getAttribute('data-verdict')
}

export type PageSignature = { signature: `0x${string}`; slug: string; opening: Opening; openingFile: string }

/** Signs on `/sign` and saves the opening. */
export async function signContent(
  page: Page,
  { kind, content }: { kind: 'Text' | 'Typed data'; content: string },
): Promise<PageSignature> {
  await page.getByRole('link', { name: 'Sign', exact: true }).click()
  await page.getByRole('radio', { name: kind }).click()
  await page.getByRole('textbox').fill(content)
  await page.getByRole('button', { name: 'Review' }).click()
  await page.getByRole('button', { name: 'Sign', exact: true }).click()
  const href = await page.getByRole('link', { name: 'View proof' }).getAttribute('href')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download opening' }).click(),
  ])
  const openingFile = await download.path()
  const opening = parseOpening(await readFile(openingFile))
  if (typeof opening.signature === 'string') throw new Error('the half with the signature is withheld')
  return { signature: opening.signature.signature, slug: href?.split('/').at(-1) ?? '', opening, openingFile }
}

/** Returns axe's violations that are serious or worse. */
export async function findSerious(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
  return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id)
}
