import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { page } from 'vitest/browser'
import { issueGolden, slug } from '../../../../packages/verify/src/issues.fake.ts'
import { createFakeNetwork } from '../../../../packages/verify/src/network.fake.ts'
import { toConfig } from '../config.fake.ts'
import { heading, PATIENCE, renderPage } from '../report/reportPage.fake.tsx'
import { expectAccessible } from '../shell/expectAccessible.fake.ts'
import { createWarmWorker } from '../worker/warmWorker.fake.ts'
import { ProofPage } from './ProofPage.tsx'

const issue = await issueGolden()
/** Of the header and footer that the app has around its pages. */
const SHELL_HEIGHT = 250
const WarmWorker = createWarmWorker()

let network = createFakeNetwork(issue)
beforeEach(() => {
  network = createFakeNetwork(issue)
  vi.stubGlobal('fetch', network.fetch)
  vi.stubGlobal('Worker', WarmWorker)
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const show = () => renderPage(<ProofPage slug={slug} />, toConfig(issue))

test('the page has the verdict first, then what was signed, then the checks, and the service’s own word last', async () => {
  await show()
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  expect([...document.querySelectorAll('h2')].map(({ textContent }) => textContent)).toEqual([
    'Nothing failed, on MOCK evidence',
    'What was signed',
    'The checks',
    'Keep the evidence',
    'Look for yourself',
    'What it is held against',
    'Check it without this page',
    'What the service says',
  ])
  expect(document.querySelectorAll('[data-group]')).toHaveLength(6)
  expect(document.querySelectorAll('details[open]')).toHaveLength(0)
  const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map(({ tagName }) => Number(tagName.slice(1)))
  expect(levels[0]).toBe(1)
  expect(levels.every((level, index) => level <= (levels[index - 1] ?? 0) + 1)).toBe(true)
  const status = page.getByRole('status').filter({ hasText: '30 steps: 27 passed, 0 failed, 3 not judged.' })
  await expect.element(status, PATIENCE).toBeInTheDocument()
})

test('closed, the page is at most two screens of a phone high, and nothing is wider than the screen, nor at 320 pixels', async () => {
  await page.viewport(390, 844)
  await show()
  await heading('Nothing failed, on MOCK evidence').toBeVisible()
  const { scrollHeight, scrollWidth } = document.documentElement
  expect(scrollHeight).toBeLessThanOrEqual(2 * 844 - SHELL_HEIGHT)
  expect(scrollWidth).toBeLessThanOrEqual(390)
  await page.viewport(320, 700)
  for (const details of document.querySelectorAll('details')) details.open = true
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(320)
  await page.viewport(414, 896)
})

test('axe finds nothing serious, with a failure and with all parts open', async () => {
  network.rpc.eth_getLogs = []
  await show()
  await heading('Not verified').toBeVisible()
  await page.getByRole('heading', { name: 'What it is held against' }).click()
  await page.getByRole('radio', { name: 'My own' }).click()
  await expectAccessible()
  for (const details of document.querySelectorAll('details')) details.open = true
  await expectAccessible()
})
