import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { fund, send, signIn, startSignIn, waitForVerdict } from './driveWeb.ts'
import { startBrowser } from './startBrowser.ts'
import { startDevStack } from './startDevStack.ts'

// Set by scripts/test.ts where there is a browser.
const { CHROMIUM_PATH: executablePath } = process.env
if (!executablePath) console.log('end-to-end tests of the web app did not run: no Chromium (CHROMIUM_PATH is not set)')

/** The machine may have other work, and a proof needs blocks and polls. */
const PATIENCE_MS = 60_000

let stack: Awaited<ReturnType<typeof startDevStack>>
let browser: Browser

async function openPage(): Promise<Page> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  context.setDefaultTimeout(PATIENCE_MS)
  const page = await context.newPage()
  await page.goto(stack.webUrl)
  return page
}

/** The payment behind a proof, as the chain has it. */
async function readTransaction(slug: string): Promise<{ nonce: string; blockNumber: string | null }> {
  const { txHash } = (await (await fetch(`${stack.apiUrl}/proof/${slug}`)).json()) as { txHash: string }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getTransactionByHash', params: [txHash] })
  const answer = await fetch(stack.chainUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return ((await answer.json()) as { result: { nonce: string; blockNumber: string | null } }).result
}

async function findSerious(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
  return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id)
}

/** How much room a page takes on a screen. */
async function measure(page: Page, viewport: { width: number; height: number }) {
  await page.setViewportSize(viewport)
  const room = await page.evaluate(() => {
    const { scrollHeight, scrollWidth } = document.documentElement
    return { scrollHeight, scrollWidth }
  })
  return {
    isWithinTwoScreens: room.scrollHeight <= 2 * viewport.height,
    isWithinWidth: room.scrollWidth <= viewport.width,
  }
}

async function verify(...args: string[]) {
  const deps = { fetch: globalThis.fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
  return runCli(deps, ['verify', ...args])
}

describe.skipIf(!executablePath)('the web app, on all that npm run dev starts', () => {
  beforeAll(async () => {
    stack = await startDevStack()
    browser = await startBrowser(executablePath ?? '')
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await stack?.stop()
  })

  test('sign in, fund, send, reload midway, watch the proof become complete, have the browser verify it', async () => {
    const page = await openPage()
    expect(await findSerious(page)).toEqual([])
    await signIn(page, 'Alice')
    await page.getByText('This wallet has no ETH yet').waitFor()
    await fund(page)
    await page.getByText('1 ETH').first().waitFor()
    await page.getByText('Received from').first().waitFor()
    expect(await findSerious(page)).toEqual([])
    const slug = await send(page, '0.05')
    await page.getByRole('link', { name: /^Sent to 0x709979…dc79C8.*−0\.05 ETH/ }).waitFor()

    // A reload loses nothing: the history has it.
    await page.reload()
    await page.locator(`a[href="/proof/${slug}"]`).first().click()
    await page.getByRole('heading', { name: 'Proof of a signature' }).waitFor()
    expect(await waitForVerdict(page)).toBe('mock')
    await page.getByRole('heading', { name: 'Nothing failed, on MOCK evidence' }).waitFor()
    expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)
    expect(await page.locator('[data-step][data-status="pass"]').count()).toBeGreaterThan(20)
    expect(await findSerious(page)).toEqual([])
    expect(await measure(page, { width: 390, height: 844 })).toEqual({ isWithinTwoScreens: true, isWithinWidth: true })
    expect(await measure(page, { width: 320, height: 844 })).toMatchObject({ isWithinWidth: true })

    const answer = await fetch(`${stack.apiUrl}/proof/${slug}`)
    const proof = (await answer.json()) as { status: string; txHash: string; ipfsCid: string }
    expect(proof.status).toBe('complete')
    const { attestations } = (await (await fetch(`${stack.webUrl}/config.json`)).json()) as {
      attestations: { rpcUrl: string; address: string }
    }
    const chain = ['--rpc', attestations.rpcUrl, '--contract', attestations.address]
    const api = ['--api', stack.apiUrl]
    for (const subject of [
      [`${stack.webUrl}/proof/${slug}`],
      [`${stack.apiUrl}/ipfs/${proof.ipfsCid}`],
      [proof.ipfsCid, ...api],
      [proof.txHash, ...chain, ...api],
      [`${stack.apiUrl}/proof/${slug}`, ...chain],
    ]) {
      const { exitCode, stdout, stderr } = await verify(...subject)
      // Simulated: nothing failed, and nothing is proven about hardware.
      expect({ exitCode, stderr, fails: stdout.match(/✗/g) }).toEqual({ exitCode: 3, stderr: '', fails: null })
      expect(stdout).toContain('\nWhat the receipt says was signed: A payment of 0.05 ETH\n')
    }

    // All that the chain counts for this wallet has a proof.
    await page.goto(stack.webUrl)
    await page.getByRole('button', { name: 'Check all transactions' }).click()
    await page.getByText('1 of 1 transaction has a proof; complete up to nonce 1.').waitFor()
    expect(await findSerious(page)).toEqual([])
    expect(stack.faults).toEqual([])
  }, 300_000)

  test('after a sign-out the provider, who still knows the user, asks all the same, also after a change of mind', async () => {
    const page = await openPage()
    await signIn(page, 'Alice')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'A wallet that proves every signature' }).waitFor()

    await startSignIn(page)
    expect(await findSerious(page)).toEqual([])
    await page.getByRole('link', { name: 'Cancel and go back' }).click()
    await page.getByText('You did not sign in').waitFor()
    expect([page.url(), await findSerious(page)]).toEqual([`${stack.webUrl}/`, []])
    await startSignIn(page)
    await page.getByLabel('Name').fill('Grace Hopper')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Grace Hopper').waitFor()
    expect(stack.faults).toEqual([])
  }, 180_000)

  test('going back from the provider is no error', async () => {
    const page = await openPage()
    await startSignIn(page)
    await page.goBack()
    await page.getByRole('button', { name: 'Continue with Local provider' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  }, 180_000)

  test('a token: sent whole with Max, and found by the one who gets it', async () => {
    const [giver, taker] = [await openPage(), await openPage()]
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
    await giver.getByText('In block').first().waitFor()
    await giver.getByRole('link', { name: /^Sent to .*−100 TEST/ }).waitFor()
    await giver.getByText('0 TEST', { exact: true }).waitFor()
    await taker.reload()
    await taker.getByText('+100 TEST').waitFor()
    await taker.getByText('200 TEST', { exact: true }).waitFor()
  }, 180_000)

  test('two tabs send at the same time: both are mined, with two nonces', async () => {
    const page = await openPage()
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
      .poll(() => page.locator('a[href^="/proof/"]').count(), { timeout: PATIENCE_MS })
      .toBeGreaterThanOrEqual(2)
  }, 180_000)

  test('the dev server gives out no file but the app’s own: the local root secret lies in the checkout', async () => {
    const root = join(import.meta.dirname, '..')
    const ask = async (path: string) => (await fetch(`${stack.webUrl}/@fs${path}`)).status
    expect(await ask(join(root, 'apps/web/src/App.tsx'))).toBe(200)
    expect(await ask(join(root, 'package.json'))).toBe(403)
    expect(await ask(join(root, '.env.example'))).toBe(403)
  })

  test('an API that lies about a proof is caught by the page', async () => {
    const list = await openPage()
    await signIn(list, 'Alice')
    const href = await list.locator('a[href^="/proof/"]').first().getAttribute('href')
    const page = await openPage()
    const slug = href?.split('/').at(-1) ?? ''
    await page.context().route(`${stack.apiUrl}/proof/${slug}`, async (route) => {
      const response = await route.fetch()
      const json = { ...(await response.json()), walletAddress: '0x000000000000000000000000000000000000dead' }
      await route.fulfill({ response, json })
    })
    await page.goto(`${stack.webUrl}/proof/${slug}`)
    await page.getByRole('heading', { name: 'The service says something false about this receipt' }).waitFor()
  }, 180_000)
})
