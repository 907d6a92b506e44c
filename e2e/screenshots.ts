import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright'
import { findChromium } from '../scripts/findChromium.ts'
import { readArguments, refuseArguments } from '../scripts/readArguments.ts'
import { addAuthenticator, makeVault, sendReviewed, writePayment } from './driveVaults.ts'
import { fund, review, send, signIn, startSignIn, waitForVerdict } from './driveWeb.ts'

const USAGE = `usage: npm run screenshots -- [FOLDER]

Starts the local stack on free ports, and takes pictures of every page of the web app: light and dark, wide and on
phones. A page that scrolls sideways is an error.
  FOLDER   where they go (default docs/screenshots)
  --help   says this

Example: npm run screenshots -- /tmp/pictures
Exit codes: 0 taken, 1 it failed, 2 wrong arguments.`

const SIZES = {
  wide: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
  small: { width: 320, height: 640 },
}
const PERMIT = {
  domain: {
    name: 'Token',
    version: '1',
    chainId: 31337,
    verifyingContract: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
  },
  types: {
    Permit: ['owner', 'spender']
      .map((name) => ({ name, type: 'address' }))
      .concat(['value', 'nonce', 'deadline'].map((name) => ({ name, type: 'uint256' }))),
  },
  primaryType: 'Permit',
  message: {
    owner: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
    spender: '0x000000000000000000000000000000000000dead',
    value: '1000',
    nonce: 0,
    deadline: 1893456000,
  },
}
const { positionals } = readArguments({}, USAGE, { takesPositionals: true })
if (positionals.length > 1) refuseArguments('Name one folder.', USAGE)
const folder = resolve(positionals[0] ?? join(import.meta.dirname, '../docs/screenshots'))
// Imported after the arguments are parsed, because loading takes seconds.
const [{ startBrowser }, { startDevStack }] = await Promise.all([
  import('./startBrowser.ts'),
  import('./startDevStack.ts'),
])

const executablePath = await findChromium(process.env, AbortSignal.timeout(300_000))
if (!executablePath) throw new Error('no Chromium found: set CHROMIUM_PATH')
await mkdir(folder, { recursive: true })
console.log('Starting the stack …')
// Budgets need a log.
const stack = await startDevStack({ hasLog: true })
const browser = await startBrowser(executablePath)
try {
  const first = await (await browser.newContext()).newPage()
  await first.goto(stack.webUrl)
  await signIn(first, 'Alice')
  await first.getByText('This wallet has no ETH yet').waitFor()
  for (const [size, viewport] of Object.entries(SIZES)) {
    await first.setViewportSize(viewport)
    await shoot(first, join(folder, `empty-${size}-light.png`))
  }
  await fund(first)
  await send(first, '0.05')
  await first.reload()
  const slug = await send(first, '0.1')
  await first.goto(`${stack.webUrl}/proof/${slug}`)
  await waitForVerdict(first)
  await first.goto(stack.webUrl)
  await addAuthenticator(first)
  const { address: vault } = await makeVault(first, { template: /^Approval above an amount/, limit: '0.1' })
  await fund(first)
  await writePayment(first, '0.05')
  await sendReviewed(first, '0.05')

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const name = (page: string) => join(folder, `${page}-${size}-${colorScheme}.png`)
      const context = await browser.newContext({ colorScheme, viewport, reducedMotion: 'reduce', deviceScaleFactor: 1 })
      const page = await context.newPage()
      const show = async (path: string) => page.goto(`${stack.webUrl}${path}`)
      await show('/')
      await page.getByRole('button', { name: 'Continue with Local provider' }).waitFor()
      await shoot(page, name('welcome'))
      await startSignIn(page)
      await shoot(page, name('local-provider'))
      await show('/verify')
      await page.getByRole('heading', { level: 1 }).waitFor()
      await shoot(page, name('verify'))
      // Each browser has its own key.
      await show('/')
      await signIn(page, 'Alice')
      await page.locator('a[href^="/proof/"]').first().waitFor()
      await page.getByText('Received from').first().waitFor()
      await shoot(page, name('wallet'))
      await page.getByRole('button', { name: 'Receive' }).click()
      await page.getByRole('img', { name: 'QR code of your address' }).waitFor()
      await shoot(page, name('receive'))
      await review(page, '0.2')
      await shoot(page, name('confirm'))
      await page.getByRole('button', { name: 'Change' }).click()
      await page.getByLabel('Asset').selectOption({ label: 'TEST (Test Token)' })
      await page.getByRole('button', { name: 'Max' }).click()
      await page.getByLabel('Amount in TEST').and(page.locator(':not([value=""])')).waitFor()
      await page.getByRole('button', { name: 'Review' }).click()
      await page.getByRole('button', { name: /^Sign and send/ }).waitFor()
      await shoot(page, name('confirm-token'))
      await show('/sign')
      await page.getByRole('radio', { name: 'Typed data' }).click()
      await page.getByRole('textbox').fill(JSON.stringify(PERMIT))
      await page.getByRole('button', { name: 'Review' }).click()
      await page.getByRole('button', { name: 'Sign', exact: true }).waitFor()
      await shoot(page, name('sign-confirm'))
      await page.getByRole('button', { name: 'Sign', exact: true }).click()
      await page.getByRole('link', { name: 'Download opening' }).waitFor()
      await shoot(page, name('signed'))
      await show(`/proof/${slug}`)
      await waitForVerdict(page)
      await shoot(page, name('proof'))
      await shootVaults(page, { vault, show, name })
      await context.close()
    }
  }
  console.log(`The pictures are in ${folder}.`)
} finally {
  await browser.close()
  await stack.stop()
}

type Shown = { vault: string; show(path: string): Promise<unknown>; name(page: string): string }

async function shootVaults(page: Page, { vault, show, name }: Shown) {
  await addAuthenticator(page)
  await show('/vaults')
  await page.getByRole('link', { name: /Up to 0\.1/ }).waitFor()
  await shoot(page, name('vaults'))
  await show('/vaults/new')
  await page.getByLabel('Maximum without approval, in ETH').fill('0.1')
  await page.getByRole('button', { name: 'Create passkey' }).click()
  await page.getByText('Add a spare passkey').waitFor()
  await shoot(page, name('vault-new'))
  await page.getByRole('radio', { name: /^An agent with a budget/ }).click()
  await page.getByRole('button', { name: 'Create agent key' }).click()
  await page.getByText('Created in this browser.').waitFor()
  await shoot(page, name('vault-agent'))
  await page.getByRole('button', { name: 'Review rules' }).click()
  await page.getByText('These rules can never change.').waitFor()
  await shoot(page, name('vault-rules'))
  await show(`/vaults/${vault}`)
  await page.locator('a[href^="/proof/"]').first().waitFor()
  await shoot(page, name('vault'))
  await writePayment(page, '0.2')
  await page.getByText('Approve on another device').click()
  const link = (await page.getByRole('link', { name: 'Approval link' }).getAttribute('href')) ?? ''
  await shoot(page, name('vault-approval'))
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByText('Contract call').click()
  await page.getByLabel('Data').fill('0xdeadbeef')
  await page.getByLabel('Gas limit').fill('50000')
  await page.getByRole('button', { name: 'Review' }).click()
  await page.getByText('Rejected by the vault’s rules').waitFor()
  await shoot(page, name('vault-refused'))
  await page.goto(link)
  await page.getByRole('button', { name: 'Approve with passkey' }).waitFor()
  await shoot(page, name('approve'))
}

async function shoot(page: Page, path: string) {
  await page.evaluate(() => document.fonts.ready)
  const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)
  if (isTooWide) process.exitCode = 1
  await page.screenshot({ path, fullPage: true })
  console.log(isTooWide ? `${path} scrolls sideways` : path)
}
