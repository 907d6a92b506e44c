import type { Browser, Page } from 'playwright'
import { onTestFinished } from 'vitest'

/** The machine may have other work, and a proof needs blocks and polls. */
export const PATIENCE_MS = 60_000

/** A page in a browser of its own, without cookies, which is closed after the test. */
export async function openPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  context.setDefaultTimeout(PATIENCE_MS)
  return context.newPage()
}
