import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readStaticFiles } from '@countersign/service/staticFiles'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildSite } from '../docs/site/build.ts'
import { API, createTestApp } from '../services/coordinator/test/http/testApp.ts'
import { findSerious } from './driveWeb.ts'
import { openPage } from './openPage.ts'
import { startBrowser } from './startBrowser.ts'

// Set by scripts/test.ts where there is a browser.
const { CHROMIUM_PATH: executablePath } = process.env

// Like `e2e/journey.test.ts`, part of `npm test`.
describe.skipIf(!executablePath)('the documentation site, as a coordinator serves it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'docs-'))
  let app: ReturnType<typeof createTestApp>
  let browser: Browser

  beforeAll(async () => {
    buildSite({ outFolder: folder, base: '/docs' })
    app = createTestApp({ deps: { docsSite: readStaticFiles(folder) } })
    browser = await startBrowser(executablePath ?? '')
  })
  afterAll(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true })
  })

  async function openDocs(path: string, theme: 'light' | 'dark' = 'light'): Promise<{ page: Page; errors: string[] }> {
    const page = await openPage(browser)
    const errors: string[] = []
    page.on('pageerror', ({ message }) => errors.push(message))
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    await page.route('**/*', async (route) => {
      const { pathname } = new URL(route.request().url())
      const response = await app.request(pathname)
      const headers = Object.fromEntries(response.headers)
      await route.fulfill({ status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) })
    })
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' })
    await page.goto(`${API}${path}`)
    return { page, errors }
  }

  test.each(['', '/build/webhooks', '/run/configuration', '/verify/check-a-proof', '/glossary'])(
    'axe finds nothing serious on /docs%s, light and dark, and no error is logged',
    async (path) => {
      for (const theme of ['light', 'dark'] as const) {
        const { page, errors } = await openDocs(`/docs${path}`, theme)
        expect([theme, await findSerious(page), errors]).toEqual([theme, [], []])
      }
    },
  )

  test('search opens with a key, finds a section and leads to it', async () => {
    const { page, errors } = await openDocs('/docs')
    await page.keyboard.press('/')
    await page.getByPlaceholder('Search the documentation').fill('nonce_taken')
    await page.getByRole('link', { name: /^nonce_taken/ }).waitFor()
    expect(await findSerious(page)).toEqual([])
    await page.keyboard.press('Enter')
    await page.waitForURL(`${API}/docs/errors#nonce_taken`)
    expect(errors).toEqual([])
  })

  test('the chosen theme is kept for the next page', async () => {
    const { page } = await openDocs('/docs', 'light')
    await page.getByRole('button', { name: 'Switch between light and dark' }).click()
    await page.getByRole('link', { name: 'Webhooks' }).first().click()
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor()
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
  })

  test.each(['/docs', '/docs/build/vaults', '/docs/spec/evidence'])(
    '%s fits on a phone, and its menu opens',
    async (path) => {
      const { page } = await openDocs(path)
      await page.setViewportSize({ width: 320, height: 640 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      expect(width).toBe(320)
      await page.getByRole('button', { name: 'Pages' }).click()
      await page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name: 'Glossary' }).waitFor()
    },
  )
})
