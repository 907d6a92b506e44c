import type { Browser, Page } from 'playwright'
import { onTestFinished } from 'vitest'

/** The machine may be busy, and a proof needs blocks and polls. */
export const PATIENCE_MS = 60_000

/** Opens a page in a new browser without cookies and closes it after the test. */
export async function openPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  context.setDefaultTimeout(PATIENCE_MS)
  return context.newPage()
}
