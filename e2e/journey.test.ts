import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { findSerious, fund, send, signIn, waitForVerdict } from './driveWeb.ts'
import { openPage } from './openPage.ts'
import { startBrowser } from './startBrowser.ts'
import { startDevStack } from './startDevStack.ts'

// Set by scripts/test.ts where there is a browser.
const { CHROMIUM_PATH: executablePath } = process.env
if (!executablePath) console.log('the journey through the web app did not run: no Chromium (CHROMIUM_PATH is not set)')

let stack: Awaited<ReturnType<typeof startDevStack>>
let browser: Browser

async function openApp(): Promise<Page> {
  const page = await openPage(browser)
  await page.goto(stack.webUrl)
  return page
}

/** The size of a page on screen. */
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

// The one part of `npm run e2e` that `npm test` also runs.
describe.skipIf(!executablePath)('the web app as deployed, on everything else that npm run dev starts', () => {
  beforeAll(async () => {
    stack = await startDevStack({ isWebBuilt: true })
    browser = await startBrowser(executablePath ?? '')
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await stack?.stop()
  })

  test('signs in, funds, sends, reloads midway, completes the proof and verifies it in the browser', async () => {
    const page = await openApp()
    expect(await findSerious(page)).toEqual([])
    await signIn(page, 'Alice')
    await page.getByText('This wallet has no ETH yet').waitFor()
    await fund(page)
    await page.getByText('1 ETH').first().waitFor()
    await page.getByText('Received from').first().waitFor()
    expect(await findSerious(page)).toEqual([])
    const slug = await send(page, '0.05')
    await page.getByRole('link', { name: /^Sent to 0x709979…dc79C8.*−0\.05 ETH/ }).waitFor()

    // A reload keeps the history.
    await page.reload()
    await page.locator(`a[href="/proof/${slug}"]`).first().click()
    await page.getByRole('heading', { name: 'Proof of a signature' }).waitFor()
    expect(await waitForVerdict(page)).toBe('mock')
    await page.getByRole('heading', { name: 'Nothing failed, on MOCK evidence' }).waitFor()
    expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)
    expect(await page.locator('[data-step][data-status="pass"]').count()).toBeGreaterThan(20)
    expect(await findSerious(page)).toEqual([])
    // The chain has the event before the service reports it. Until then, the page shows the remaining stage.
    await page.getByText('Not started.').waitFor({ state: 'hidden' })
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
      expect(stdout).toContain('\nStated in the receipt: A payment of 0.05 ETH\n')
    }

    // Every transaction of this wallet has a proof.
    await page.goto(stack.webUrl)
    await page.getByRole('button', { name: 'Check all transactions' }).click()
    await page.getByText('1 of 1 transaction has a proof; complete up to nonce 1.').waitFor()
    expect(await findSerious(page)).toEqual([])
    expect(stack.faults).toEqual([])
  }, 300_000)

  test('shows a retry for a part that fails to load offline, and keeps the rest', async () => {
    const page = await openApp()
    await signIn(page, 'Alice')
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Receive' }).click()
    await page.getByRole('button', { name: 'Check all transactions' }).click()
    const retries = page.getByRole('button', { name: 'Try again' })
    await expect.poll(() => retries.count()).toBe(2)
    await page.getByRole('heading', { name: 'Your address' }).waitFor()
    expect(await findSerious(page)).toEqual([])
    await page.context().setOffline(false)
    await retries.first().click()
    await page.getByRole('img', { name: 'QR code of your address' }).waitFor()
    await retries.click()
    await page.getByText(/complete up to nonce/).waitFor()

    // If a whole page fails to load, the menu stays.
    await page.context().setOffline(true)
    await page.getByRole('link', { name: 'Verify', exact: true }).click()
    await retries.waitFor()
    await page.context().setOffline(false)
    await retries.click()
    await page.getByRole('heading', { name: 'Verify a receipt' }).waitFor()
  }, 180_000)

  test('an API that lies about a proof is caught by the page', async () => {
    const list = await openApp()
    await signIn(list, 'Alice')
    const href = await list.locator('.history-row[href^="/proof/"]').first().getAttribute('href')
    const page = await openApp()
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
