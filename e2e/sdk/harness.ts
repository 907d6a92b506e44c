import { waitForCompleteProofs } from '@countersign/testing/stack'
import type { BrowserContext, Page } from 'playwright'
import type { Address } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect, onTestFinished } from 'vitest'
import { type App, driveApp } from '../driveApp.ts'
import { openTab } from '../openTab.ts'
import type { Stack } from '../startStack.ts'

export const SESSION = 'countersign-session'
export const SIGNED_OUT = { user: null, wallet: null, ready: true, error: null }

type Place = { context?: BrowserContext; path?: string; origin?: string }

export type Harness = ReturnType<typeof createHarness>

/** Pages of the app on one stack, which starts before the first test. */
export function createHarness(getStack: () => Stack) {
  /** A new browser, closed after the test. */
  async function openBrowser(): Promise<BrowserContext> {
    const context = await getStack().openContext()
    onTestFinished(() => context.close())
    return context
  }

  async function open({ context, path = '/', origin = getStack().origin }: Place = {}): Promise<App> {
    const url = `${origin}${path}`
    const tab = await openTab(context ?? (await openBrowser()), { url, apiBaseUrl: getStack().backend.url })
    onTestFinished(() => expect(tab.errors).toEqual([]))
    return driveApp(tab)
  }

  return {
    get stack() {
      return getStack()
    },
    openBrowser,
    open,
    /** A page with a signed-in user who has ether. */
    async openSignedIn(name: string, place?: Place) {
      const app = await open(place)
      const address = await app.signIn(name)
      await getStack().fund(address)
      return { ...app, address }
    },
    async openPlain(context: BrowserContext): Promise<App> {
      const app = await open({ context, path: '/plain.html' })
      await app.page.waitForFunction(() => 'plain' in window)
      return app
    },
    /** Reads without a session. Every response is checked against the API description. */
    waitForProofs(slugs: readonly string[]) {
      const { url, call } = getStack().backend
      return waitForCompleteProofs({ url, slugs, get: call })
    },
    getBalance: (address: Address) => getStack().chainClient.getBalance({ address }),
    countSent: (address: Address) => getStack().chainClient.getTransactionCount({ address }),
  }
}

/** Calls the imperative client. Returns the result, or the error's code and status. */
export function sendPlainly(page: Page, to: Address) {
  const send = (recipient: Address) =>
    window.plain.client
      .signAndSend({ to: recipient, value: '0.01' })
      .catch(({ code, status }: { code: string; status?: number }) => ({ code, status }))
  return page.evaluate(send, to)
}

export const createStranger = (): Address => privateKeyToAddress(generatePrivateKey())
