import type { BrowserContext, Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHarness, createStranger, SIGNED_OUT } from './sdk/harness.ts'
import { toAppConfig } from './sdk/toAppConfig.ts'
import { type Stack, startStack } from './startStack.ts'

// Set by `npm run e2e`.
const { CHROMIUM_PATH: executablePath = '' } = process.env

/** The number of keys that the page's browser stores. */
function countKeys(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const [database] = await indexedDB.databases()
    return new Promise<number>((resolve, reject) => {
      const opening = indexedDB.open(database?.name ?? '')
      opening.onerror = reject
      opening.onsuccess = () => {
        const counting = opening.result.transaction('keys').objectStore('keys').count()
        counting.onerror = reject
        counting.onsuccess = () => resolve(counting.result)
        opening.result.close()
      }
    })
  })
}

describe.each(['bound', 'direct'] as const)('a %s session in a browser', (session) => {
  const isDirect = session === 'direct'
  let stack: Stack
  const sdk = createHarness(() => stack)

  beforeAll(async () => {
    stack = await startStack({
      executablePath,
      isDirect,
      enclaveEnv: { SESSIONS: 'bound' },
      toViteConfig: (config) => toAppConfig(config, session),
    })
  }, 180_000)
  afterAll(() => stack?.stop())

  /** Direct sign-in also works from another site, where the service's cookies are third-party cookies. */
  const open = (context: BrowserContext, path = '/') =>
    sdk.open({ context, path, ...(isDirect && { origin: stack.crossSiteOrigin }) })

  async function pay(app: Awaited<ReturnType<typeof open>>) {
    await app.waitUntilReady()
    await app.pay({ to: createStranger(), ether: '0.01' })
    const [result] = await app.waitForResults(1)
    return result?.attestationSlug ?? ''
  }

  test('signs after the sign-in, after a reload and in a second tab, until the user signs out', async () => {
    const context = await sdk.openBrowser()
    const first = await open(context, '/shop?basket=7#checkout')
    const { href } = new URL(first.page.url())
    expect(await first.waitUntilReady()).toEqual(SIGNED_OUT)
    await stack.fund(await first.signIn('alice'))
    expect(first.page.url()).toBe(href)
    const slugs = [await pay(first)]
    await first.page.reload()
    slugs.push(await pay(first))
    const second = await open(context)
    slugs.push(await pay(second))
    expect(await countKeys(second.page)).toBe(1)

    const cookies = await context.cookies(stack.backend.url)
    await first.press('Sign out')
    expect(await first.waitForOutcomes()).toEqual([{ value: null }])
    expect(await countKeys(second.page)).toBe(0)
    for (const restored of [[], cookies]) {
      await context.addCookies(restored)
      await second.pay({ to: createStranger(), ether: '0.01' })
      expect(await second.waitForError()).toMatchObject({ code: 'not_authenticated' })
    }
    expect(await sdk.waitForProofs(slugs)).toHaveLength(3)
  })

  test('a private window has neither session nor key, and can sign in itself', async () => {
    const normal = await open(await sdk.openBrowser())
    await normal.signIn('bob')
    const privately = await open(await sdk.openBrowser())
    expect(await privately.waitUntilReady()).toEqual(SIGNED_OUT)
    await stack.fund(await privately.signIn('bob'))
    await pay(privately)
    await privately.press('Sign out')
    await privately.waitForOutcomes()
    expect([await countKeys(privately.page), await countKeys(normal.page)]).toEqual([0, 1])
  })
})
