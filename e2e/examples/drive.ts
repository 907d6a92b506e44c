import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import type { Browser, Page } from 'playwright'
import { findNodes } from '../../scripts/packages/findNodes.ts'

export type Example = {
  /** The folder in which it's installed and built. */
  folder: string
  /** The page's URL. */
  url: string
  browser: Browser
  startServer(): Promise<{ stop(): Promise<void> }>
}

const WAIT = { timeout: 60_000 }

/** Uses an example's page, which must not report errors such as a failed hydration. */
async function withPage({ url, browser, startServer }: Example, use: (page: Page) => Promise<void>): Promise<void> {
  const server = await startServer()
  const context = await browser.newContext()
  try {
    const page = await context.newPage()
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('console', (message) => {
      // Chromium reports the service's first responses as errors: 401 without a session, 404 without a wallet.
      const isStatus = /^Failed to load resource: .* status of 40[14] /.test(message.text())
      if (message.type() === 'error' && !isStatus) errors.push(message.text())
    })
    await page.goto(url)
    await use(page)
    assert.deepEqual(errors, [])
  } finally {
    await context.close()
    await server.stop()
  }
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

/** Signs in with the local stack's provider, where a name is enough. */
async function signIn(page: Page, { button, name }: { button: string; name: string }): Promise<void> {
  const { origin } = new URL(page.url())
  await press(page, button)
  await page.waitForURL((url) => url.origin !== origin)
  await page.goto(new URL(`?as=${name}`, page.url()).href)
  await page.waitForURL((url) => url.origin === origin)
}

/** Signs in, gets test ETH and pays. */
async function pay(page: Page): Promise<void> {
  await signIn(page, { button: 'Sign in', name: 'alice' })
  const funded = page.waitForResponse((response) => response.url().endsWith('/faucet'))
  await press(page, 'Get test ETH')
  assert.equal((await funded).status(), 200)
  await press(page, 'Pay 0.001 ETH')
}

export function driveVite(example: Example): Promise<void> {
  return withPage(example, async (page) => {
    await pay(page)
    await page
      .getByRole('status')
      .filter({ hasText: /^0x[0-9a-f]{64}: proof complete$/ })
      .waitFor(WAIT)
  })
}

export function driveDirect(example: Example): Promise<void> {
  return withPage(example, async (page) => {
    await pay(page)
    await page.getByText('alice@example.com (alice at http://localhost:').waitFor(WAIT)
    const link = page.getByRole('link', { name: 'Proof of the payment' })
    assert.equal((await fetch((await link.getAttribute('href', WAIT)) ?? '')).status, 200)
    await page.reload()
    await press(page, 'Sign a message')
    await page.getByRole('link', { name: 'Proof of the message' }).waitFor(WAIT)
    const other = await page.context().newPage()
    await other.goto(example.url)
    await press(other, 'Sign out')
    await press(page, 'Sign a message')
    await page.getByRole('alert').waitFor(WAIT)
  })
}

export function driveNext(example: Example): Promise<void> {
  return withPage(example, async (page) => {
    const html = await (await fetch(example.url)).text()
    assert.match(html, /<h1>Pay with Countersign<\/h1><p>Loading…<\/p>/)
    await pay(page)
    const link = page.getByRole('link', { name: /^Proof of 0x/ })
    const txHash = (await link.textContent(WAIT))?.slice('Proof of '.length) ?? ''
    await link.click()
    await page.waitForURL((url) => url.pathname.startsWith('/proof/'))
    await page.getByText(txHash).waitFor(WAIT)
    // The server fetched the proof, so it's in the page before any script runs.
    assert.ok((await (await fetch(page.url())).text()).includes(txHash))
    assert.equal((await fetch(`${example.url}/proof/${'A'.repeat(22)}`)).status, 404)
    await page.reload()
    await page.getByText(txHash).waitFor(WAIT)
  })
}

export function driveWagmi(example: Example): Promise<void> {
  return withPage(example, async (page) => {
    page.on('dialog', (dialog) => dialog.accept())
    await signIn(page, { button: 'Connect', name: 'bob' })
    await press(page, 'Sign in with Ethereum')
    await page.getByText(/^Signed in as 0x[0-9a-fA-F]{40}\.$/).waitFor(WAIT)
    // A nonce is valid once, and only for a signature.
    const refused = await page.evaluate(async () => {
      const answer = await fetch('/siwe/verify', { method: 'POST', body: '{"message":"","signature":"0x"}' })
      return answer.status
    })
    assert.equal(refused, 401)
  })
}

const GOLDEN = 'node_modules/@countersign/receipt/spec/golden/receipt.json'
/** The verifier's result: everything holds, but the hardware is simulated. */
const SIMULATED = 3

export async function driveNode({ folder, url }: Example): Promise<void> {
  for (const [version, node] of await findNodes()) {
    const paid = await run(folder, node, ['dist/pay.js'])
    assert.equal(paid.code, 0, `Node ${version}:\n${paid.output}`)
    assert.match(paid.output, /^Status {6}complete$/m)
    assert.ok(paid.output.includes(`Proof       ${url}/proof/`), paid.output)
    const verifier = 'node_modules/@countersign/verifier/dist/countersign-verify.mjs'
    const verified = await run(folder, node, [verifier, 'verify', '--offline', '--', GOLDEN])
    assert.equal(verified.code, SIMULATED, `Node ${version}:\n${verified.output}`)
    console.log(`node: paid and verified under Node ${version}`)
  }
}

export async function driveAgent({ folder, url }: Example): Promise<void> {
  for (const [version, node] of await findNodes()) {
    const { code, output } = await run(folder, node, ['dist/main.js'])
    assert.equal(code, 0, `Node ${version}:\n${output}`)
    assert.equal(output.match(/^Verified .*: accepted$/gm)?.length, 3, output)
    assert.ok(output.includes(`Proof       ${url}/proof/`), output)
    console.log(`agent: paid until the budget ended under Node ${version}`)
  }
}

function run(cwd: string, node: string, args: readonly string[]) {
  return new Promise<{ code: unknown; output: string }>((settle) => {
    execFile(node, args, { cwd }, (error, stdout, stderr) =>
      settle({ code: error?.code ?? (error === null ? 0 : 1), output: `${stdout}${stderr}` }),
    )
  })
}
