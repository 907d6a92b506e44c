import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findSerious, fund, send, signIn, startSignIn } from './driveWeb.ts'
import { openPage, PATIENCE_MS } from './openPage.ts'
import { startBrowser } from './startBrowser.ts'
import { startDevStack } from './startDevStack.ts'

// Set by `npm run e2e`.
const { CHROMIUM_PATH: executablePath = '' } = process.env

let stack: Awaited<ReturnType<typeof startDevStack>>
let browser: Browser

async function openApp(): Promise<Page> {
  const page = await openPage(browser)
  await page.goto(stack.webUrl)
  return page
}

/** The payment of a proof, from the chain. */
async function readTransaction(slug: string): Promise<{ nonce: string; blockNumber: string | null }> {
  const { txHash } = (await (await fetch(`${stack.apiUrl}/proof/${slug}`)).json()) as { txHash: string }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getTransactionByHash', params: [txHash] })
  const answer = await fetch(stack.chainUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return ((await answer.json()) as { result: { nonce: string; blockNumber: string | null } }).result
}

describe('the web app, on everything that npm run dev starts', () => {
  beforeAll(async () => {
    stack = await startDevStack()
    browser = await startBrowser(executablePath)
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await stack?.stop()
  })

  test('the provider asks for an account after a sign-out, also after a cancel', async () => {
    const page = await openApp()
    await signIn(page, 'Alice')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You’re signed out').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'A wallet that proves every signature' }).waitFor()

    await startSignIn(page)
    expect(await findSerious(page)).toEqual([])
    await page.getByRole('link', { name: 'Cancel and go back' }).click()
    await page.getByText('Sign-in cancelled').waitFor()
    expect([page.url(), await findSerious(page)]).toEqual([`${stack.webUrl}/`, []])
    await startSignIn(page)
    await page.getByLabel('Name').fill('Grace Hopper')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Grace Hopper').waitFor()
    expect(stack.faults).toEqual([])
  }, 180_000)

  test('a session signs after a reload and in a second tab, until the user signs out everywhere', async () => {
    const page = await openApp()
    await signIn(page, 'Alice')
    await fund(page)
    await send(page, '0.01')
    await page.reload()
    await send(page, '0.02')
    const tab = await page.context().newPage()
    await tab.goto(stack.webUrl)
    await send(tab, '0.03')
    const elsewhere = await openApp()
    await signIn(elsewhere, 'Alice')

    await page.getByText('Open sessions').click()
    await page.getByText('Browser key, this browser').waitFor()
    expect(await findSerious(page)).toEqual([])
    await page.getByRole('button', { name: 'Sign out everywhere' }).click()
    await page.getByText('You’re signed out').waitFor()
    for (const other of [tab, elsewhere]) {
      await other.reload()
      await other.getByRole('heading', { name: 'A wallet that proves every signature' }).waitFor()
    }
  }, 180_000)

  test('going back from the provider is no error', async () => {
    const page = await openApp()
    await startSignIn(page)
    await page.goBack()
    await page.getByRole('button', { name: 'Continue with Local provider' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  }, 180_000)

  test('a token is sent completely with Max, and the recipient finds it', async () => {
    const [giver, taker] = [await openApp(), await openApp()]
    await signIn(taker, 'Bob')
    const address = await taker.locator('.address-line .mono').textContent()
    await signIn(giver, 'Alice')
    await fund(giver)
    await giver.getByLabel('Asset').selectOption({ label: 'TEST (Test Token)' })
    await giver.getByLabel('To', { exact: true }).fill(address ?? '')
    await giver.getByRole('button', { name: 'Max' }).click()
    await expect.poll(() => giver.getByLabel('Amount in TEST').inputValue(), { timeout: PATIENCE_MS }).toBe('100')
    await giver.getByRole('button', { name: 'Review' }).click()
    await giver.getByRole('button', { name: 'Sign and send 100 TEST' }).click()
    await giver.getByText('Confirmed in block').first().waitFor()
    await giver.getByRole('link', { name: /^Sent to .*−100 TEST/ }).waitFor()
    await giver.getByText('0 TEST', { exact: true }).waitFor()
    await taker.reload()
    await taker.getByText('+100 TEST').waitFor()
    await taker.getByText('200 TEST', { exact: true }).waitFor()
  }, 180_000)

  test('two tabs send at the same time with two nonces', async () => {
    const page = await openApp()
    await signIn(page, 'Bob')
    await fund(page)
    const other = await page.context().newPage()
    await other.goto(stack.webUrl)
    const slugs = await Promise.all([send(page, '0.01'), send(other, '0.02')])
    const receipts = await Promise.all(slugs.map(readTransaction))
    expect(receipts.map(({ blockNumber }) => blockNumber)).not.toContain(null)
    const [one, two] = receipts.map(({ nonce }) => Number(nonce)).toSorted((left, right) => left - right)
    expect(two).toBe((one ?? 0) + 1)
    await page.reload()
    await expect
      .poll(() => page.locator(slugs.map((slug) => `a[href="/proof/${slug}"]`).join()).count(), {
        timeout: PATIENCE_MS,
      })
      .toBe(2)
  }, 180_000)
})
