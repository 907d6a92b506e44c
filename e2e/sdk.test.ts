import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { waitForCompleteProofs } from '@countersign/testing/stack'
import type { BrowserContext, Page } from 'playwright'
import { type Address, getAddress, type Hash, parseEther } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { chooseAccount } from './chooseAccount.ts'
import { type App, driveApp } from './driveApp.ts'
import { expectPublished } from './expectPublished.ts'
import { forgeCalls } from './forgeCalls.ts'
import { openTab } from './openTab.ts'
import { readMined } from './readMined.ts'
import { type Stack, startStack } from './startStack.ts'

// Set by scripts/test.ts where there is a browser.
const { CHROMIUM_PATH: executablePath } = process.env
if (!executablePath) console.log('end-to-end tests of the SDK did not run: no Chromium (CHROMIUM_PATH is not set)')

const APP = join(import.meta.dirname, 'app')
const SESSION = 'countersign-session'
const SIGNED_OUT = { user: null, wallet: null, ready: true, error: null }

let stack: Stack

/** Somebody's browser, closed after the test. */
async function openBrowser(): Promise<BrowserContext> {
  const context = await stack.openContext()
  onTestFinished(() => context.close())
  return context
}

type Place = { context?: BrowserContext; path?: string; origin?: string }

async function open({ context, path = '/', origin = stack.origin }: Place = {}): Promise<App> {
  const url = `${origin}${path}`
  const tab = await openTab(context ?? (await openBrowser()), { url, apiBaseUrl: stack.backend.url })
  onTestFinished(() => expect(tab.errors).toEqual([]))
  return driveApp(tab)
}

/** A page on which somebody with money is signed in. */
async function openSignedIn(name: string, place?: Place) {
  const app = await open(place)
  const address = await app.signIn(name)
  await stack.fund(address)
  return { ...app, address }
}

async function openPlain(context: BrowserContext): Promise<App> {
  const app = await open({ context, path: '/plain.html' })
  await app.page.waitForFunction(() => 'plain' in window)
  return app
}

/** With the imperative client; gives the result, or code and status of the error. */
function sendPlainly(page: Page, to: Address) {
  const send = (recipient: Address) =>
    window.plain.client
      .signAndSend({ to: recipient, value: '0.01' })
      .catch(({ code, status }: { code: string; status?: number }) => ({ code, status }))
  return page.evaluate(send, to)
}

/** As anybody reads them; every answer is checked against the service's own description. */
const waitForProofs = (slugs: readonly string[]) =>
  waitForCompleteProofs({ url: stack.backend.url, slugs, get: stack.backend.call })

const createStranger = (): Address => privateKeyToAddress(generatePrivateKey())

const getBalance = (address: Address) => stack.chainClient.getBalance({ address })

const countSent = (address: Address) => stack.chainClient.getTransactionCount({ address })

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

describe.skipIf(!executablePath)('the SDK in a browser, against the real service', () => {
  beforeAll(async () => {
    stack = await startStack({
      executablePath: executablePath ?? '',
      toViteConfig: ({ apiBaseUrl, chainId, rpcUrl }) => ({
        root: APP,
        build: {
          rolldownOptions: { input: ['index.html', 'wagmi.html', 'plain.html'].map((name) => join(APP, name)) },
        },
        define: {
          'import.meta.env.VITE_API_BASE_URL': JSON.stringify(apiBaseUrl),
          'import.meta.env.VITE_CHAIN_ID': JSON.stringify(String(chainId)),
          'import.meta.env.VITE_RPC_URL': JSON.stringify(rpcUrl),
        },
      }),
    })
  })
  afterAll(() => stack?.stop())

  // First, so that no sample of entropy has been read ahead.
  test('§7 wallet lookup answers 404: the provider provisions a wallet; signAndSend while it is null: wallet_not_ready', async () => {
    const context = await openBrowser()
    const app = await open({ context })
    stack.backend.satellite.setFault('error')
    await app.press('Sign in')
    await chooseAccount(app.page, 'erin')
    expect(await app.waitUntilReady()).toMatchObject({
      user: { email: 'erin@example.com' },
      wallet: null,
      error: { code: 'entropy_unavailable', status: 503 },
    })
    const calls = await app.calls()
    expect(calls.slice(-3)).toEqual(['GET /auth/me 200', 'GET /wallet/me 404', 'POST /wallet/provision 503'])

    await app.pay({ to: createStranger() })
    expect(await app.waitForError()).toMatchObject({ code: 'wallet_not_ready', message: 'wallet_not_ready' })
    expect(await app.read('useSign')).toMatchObject({ error: { code: 'wallet_not_ready' }, lastResult: null })
    const plain = await openPlain(context)
    expect(await sendPlainly(plain.page, createStranger())).toEqual({ code: 'wallet_not_ready' })

    stack.backend.satellite.setFault()
    await app.press('Refresh')
    await app.see('useService').toMatchObject({
      wallet: { address: expect.stringMatching(/^0x[0-9a-f]{40}$/i) },
      error: null,
    })
    expect((await app.calls()).at(-1)).toBe('POST /wallet/provision 200')
  })

  test('§4 `ready` becomes true when the cycle settles; one current-user lookup per load, in StrictMode too', async () => {
    const app = await open()
    expect(await app.waitUntilReady()).toEqual(SIGNED_OUT)
    expect(await app.read('mounts')).toBe(2)
    expect(await app.calls()).toEqual(['GET /auth/me 401'])
    await app.page.reload()
    await app.waitUntilReady()
    expect(await app.calls()).toEqual(['GET /auth/me 401', 'GET /auth/me 401'])
  })

  test('§7 current-user lookup answers 401: user is null; refresh() does not reject', async () => {
    const app = await open()
    await app.waitUntilReady()
    await app.press('Refresh')
    expect(await app.waitForOutcomes()).toEqual([{ value: null }])
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
    expect(await app.calls()).toEqual(['GET /auth/me 401', 'GET /auth/me 401'])
  })

  test('§4 login is a full-page redirect, local component state is lost; §5.1 the session returns as an httpOnly cookie', async () => {
    const context = await openBrowser()
    const { page, requests, signIn, waitUntilReady } = await open({ context, path: '/?basket=7#checkout' })
    await waitUntilReady()
    await page.getByLabel('To').fill('local component state')
    await signIn('alice')

    expect(page.url()).toBe(`${stack.origin}/?basket=7#checkout`)
    expect(await page.getByLabel('To').inputValue()).toBe('')
    expect(context.pages()).toHaveLength(1)
    const started = requests.find((request) => new URL(request.url()).pathname === '/auth/google')
    expect([started?.isNavigationRequest(), started?.frame() === page.mainFrame()]).toEqual([true, true])
    expect(new URL(started?.url() ?? '').searchParams.get('return_to')).toBe(page.url())

    const cookies = await context.cookies(stack.backend.url)
    const session = cookies.find(({ name }) => name === SESSION) ?? expect.fail('no session')
    expect(session).toMatchObject({ domain: 'localhost', path: '/', httpOnly: true, sameSite: 'Lax' })
    expect(await page.evaluate(() => document.cookie)).not.toContain('countersign')
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))
    expect(kept).not.toContain(session.value)
  })

  test('§1.2 on first sign-in the backend provisions a wallet; provisioning is idempotent', async () => {
    const app = await open()
    await app.waitUntilReady()
    await app.signIn('bob')
    const { wallet } = await app.read('useService')
    // It was there with the session: the first cycle of the page finds it and has nothing to provision.
    const calls = await app.calls()
    expect(calls.slice(-3)).toEqual(['GET /auth/google/callback 302', 'GET /auth/me 200', 'GET /wallet/me 200'])
    const [me] = app.requests.slice(-2)
    expect(Date.parse(wallet?.createdAt ?? '')).toBeLessThanOrEqual(me?.timing().startTime ?? 0)
    expect(wallet?.provenance).toEqual({
      entropyHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      entropySig: expect.stringMatching(/^[0-9a-f]{128}$/),
      satelliteSource: 'simulated-satellite',
    })
    const elsewhere = await open()
    await elsewhere.signIn('bob')
    expect((await elsewhere.read('useService')).wallet).toEqual(wallet)
  })

  test('§4 signAndSend broadcasts; §8 useAttestation polls 4 seconds after the previous response and stops on `complete`', async () => {
    const app = await openSignedIn('alice')
    const { page } = app
    const to = createStranger()
    // While no block is made nothing is confirmed, so the first polls cannot find the proof complete.
    await stack.testClient.setAutomine(false)
    onTestFinished(() => stack.testClient.setAutomine(true))
    const gate = Promise.withResolvers<void>()
    await page.route('**/sign/digest', async (route) => {
      await gate.promise
      await route.continue()
    })
    // Slow answers, so that four seconds after a response are not four seconds after its request.
    await page.route('**/proof/*', async (route) => {
      await setTimeout(400)
      await route.continue()
    })
    await app.pay({ to, ether: '0.01' })
    await app.see('useSign').toEqual({ pending: true, error: null, lastResult: null })
    expect(await app.read('useAttestation')).toEqual({ proof: null, loading: false, error: null })
    gate.resolve()
    const [lastResult = expect.fail('no result')] = await app.waitForResults(1)
    const { txHash, attestationSlug: slug } = lastResult
    expect(await app.read('useSign')).toEqual({ pending: false, error: null, lastResult })
    const countPolls = async () => (await app.calls()).filter((call) => call.includes(slug)).length
    await expect.poll(countPolls, { timeout: 15_000 }).toBe(2)
    expect((await app.read('useAttestation')).proof?.status).toMatch(/^pending_/)
    await stack.testClient.setAutomine(true)
    await stack.chain.mine(2)
    expect(await readMined(stack, [txHash])).toMatchObject([{ status: 'success', from: app.address.toLowerCase() }])
    expect(await getBalance(to)).toBe(parseEther('0.01'))
    await app.see('useAttestation').toMatchObject({ proof: { status: 'complete' }, loading: false, error: null })
    const completeAfter = await countPolls()
    const { proof } = await app.read('useAttestation')
    expect(proof).toMatchObject({ slug, txHash, receipt: { transaction: { value: '10000000000000000' } } })
    await expectPublished(stack, proof ?? expect.fail('no proof'))

    // Longer than the interval.
    await setTimeout(5_000)
    expect(await countPolls()).toBe(completeAfter)
    const times = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter(({ name }) => name.includes('/proof/'))
        .map((entry) => ({ startedAt: entry.startTime, endedAt: (entry as PerformanceResourceTiming).responseEnd })),
    )
    expect(times).toHaveLength(completeAfter)
    const pauses = times.slice(1).map(({ startedAt }, index) => startedAt - (times[index]?.endedAt ?? 0))
    expect(pauses.length).toBeGreaterThanOrEqual(2)
    // The network tells the end of a response some milliseconds apart from the page.
    for (const pause of pauses) expect(pause).toBeGreaterThan(3_950)
  })

  test('§7 `gas` too low for a contract call: the broadcast fails; §4 `error` is cleared on the next invocation', async () => {
    const app = await openSignedIn('alice')
    const before = await countSent(app.address)
    await app.pay({ to: stack.contract, data: `0x${'ab'.repeat(68)}` })
    const error = await app.waitForError()
    expect(error).toMatchObject({ code: 'rpc_gas_rejected', signed: { attestationSlug: expect.any(String) } })
    expect(await app.read('useSign')).toEqual({ pending: false, error, lastResult: null })
    expect(await countSent(app.address)).toBe(before)
    const hash = error.signed?.txHash ?? '0x'
    await expect(stack.chainClient.getTransaction({ hash })).rejects.toThrow('could not be found')
    // Its nonce was not lost.
    await app.pay({ to: createStranger(), ether: '0.01' })
    const [lastResult] = await app.waitForResults(1)
    expect(await app.read('useSign')).toEqual({ pending: false, error: null, lastResult })
    expect(await countSent(app.address)).toBe(before + 1)
  })

  test('§4 nonces are read from the RPC: 20 payments at once have 20 in a row, all are mined, all proofs complete', async () => {
    const app = await openSignedIn('carol')
    const to = createStranger()
    await app.pay({ to, ether: '0.01', times: 20 })
    const results = await app.waitForResults(20)
    const hashes = results.map(({ txHash }) => txHash)
    const mined = await readMined(stack, hashes)
    expect(mined.map(({ nonce }) => nonce)).toEqual(range(20))
    for (const one of mined) expect(one).toMatchObject({ status: 'success', from: app.address.toLowerCase() })
    expect(await getBalance(to)).toBe(parseEther('0.2'))
    const proofs = await waitForProofs(results.map(({ attestationSlug }) => attestationSlug))
    expect(proofs.map(({ txHash }) => txHash)).toEqual(hashes)
    expect(new Set(proofs.map(({ ipfsCid }) => ipfsCid)).size).toBe(20)
  })

  test('§4 nonces are read from the RPC: two tabs that pay at the same time never take the same', async () => {
    const context = await openBrowser()
    const tabs = [await openSignedIn('dave', { context }), await open({ context })]
    for (const tab of tabs) await tab.waitUntilReady()
    const to = createStranger()
    await Promise.all(tabs.map((tab) => tab.pay({ to, ether: '0.01', times: 5 })))
    const results = await Promise.all(tabs.map((tab) => tab.waitForResults(5)))
    const mined = await readMined(
      stack,
      results.flat().map(({ txHash }) => txHash),
    )
    expect(mined.map(({ nonce }) => nonce)).toEqual(range(10))
    expect(await getBalance(to)).toBe(parseEther('0.1'))
  })

  test('§4 logout calls `POST /auth/logout`, then clears local user and wallet', async () => {
    const context = await openBrowser()
    const app = await openSignedIn('alice', { context })
    await app.press('Sign out')
    expect(await app.waitForOutcomes()).toEqual([{ value: null }])
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
    expect((await app.calls()).at(-1)).toBe('POST /auth/logout 200')
    const cookies = await context.cookies(stack.backend.url)
    expect(cookies.filter(({ name }) => name === SESSION)).toEqual([])
    await app.press('Refresh')
    await expect.poll(async () => (await app.calls()).at(-1)).toBe('GET /auth/me 401')
    expect(await app.waitForOutcomes()).toEqual([{ value: null }])
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
  })

  test('§5.4 the browser origin must be in the CORS allow-list: a page of another can neither read nor sign', async () => {
    const context = await openBrowser()
    const home = await openSignedIn('alice', { context })
    const foreign = await open({ context, origin: stack.foreignOrigin })
    expect(await foreign.waitUntilReady()).toMatchObject({
      user: null,
      wallet: null,
      error: { code: 'network_unreachable', details: expect.stringContaining('CORS') },
    })
    await foreign.pay({ to: createStranger() })
    expect(await foreign.waitForError()).toMatchObject({ code: 'wallet_not_ready' })

    // Nor by going round the SDK: the page is of the same site, so the cookie goes with these.
    const { url } = stack.backend
    const countSigned = async () => {
      const response = await context.request.get(`${url}/wallet/transactions?limit=100`)
      return ((await response.json()) as { transactions: unknown[] }).transactions.length
    }
    const before = await countSigned()
    expect(await forgeCalls(foreign.page, url)).toEqual(['refused', 'refused', 'refused'])
    expect(await countSigned()).toBe(before)
    // The same from the app's own page is answered, so it was the origin.
    expect((await forgeCalls(home.page, url)).slice(0, 2)).toEqual([200, 200])
    expect(await countSigned()).toBe(before + 1)

    await foreign.press('Sign in')
    await foreign.page.waitForURL(`${url}/auth/google?**`)
    expect(await foreign.page.textContent('body')).toContain('return_to')
  })

  test('§5.1 where the browser keeps the cookie from the app as a third party’s, useService().error says cookie_blocked', async () => {
    const app = await open({ origin: stack.crossSiteOrigin })
    expect(await app.waitUntilReady()).toMatchObject({ user: null, error: null })
    await app.press('Sign in')
    await chooseAccount(app.page, 'alice')
    await app.page.waitForURL(`${stack.crossSiteOrigin}/`)
    expect(await app.waitUntilReady()).toMatchObject({
      user: null,
      wallet: null,
      error: { code: 'cookie_blocked', details: expect.stringContaining(stack.backend.url) },
    })
  })

  test('wagmi: useConnect leads through the sign-in, useSendTransaction pays, and a reload is connected without asking', async () => {
    const context = await openBrowser()
    const app = await open({ context, path: '/wagmi.html' })
    await app.see('wagmi').toMatchObject({ status: 'disconnected', address: null })
    await app.press('Connect')
    await chooseAccount(app.page, 'bob')
    await app.see('wagmi').toMatchObject({ status: 'connected' })
    const address = getAddress((await app.read('wagmi')).address ?? '')
    await stack.fund(address)
    const to = createStranger()
    await app.page.getByLabel('To').fill(to)
    await app.press('Pay')
    await app.see('wagmi').toMatchObject({ txHash: expect.stringMatching(/^0x/), error: null })
    const { txHash, slugs } = await app.read('wagmi')
    expect(await readMined(stack, [txHash as Hash])).toMatchObject([{ status: 'success', from: address.toLowerCase() }])
    expect(await getBalance(to)).toBe(parseEther('0.01'))
    expect(await waitForProofs(slugs)).toMatchObject([{ txHash }])

    const before = app.requests.length
    await app.page.reload()
    await app.see('wagmi').toMatchObject({ status: 'connected', address })
    const calls = await app.calls()
    expect(calls.slice(before).filter((call) => call.includes('/auth/google'))).toEqual([])
    expect(context.pages()).toHaveLength(1)
  })

  test('§1.10 the SDK can be used without React through the imperative client; it has no auto-provisioning', async () => {
    const { page, calls } = await openPlain(await openBrowser())
    const scripts = await page.evaluate(() => {
      const urls = performance.getEntriesByType('resource').map(({ name }) => name)
      return Promise.all(urls.filter((url) => url.endsWith('.js')).map(async (url) => (await fetch(url)).text()))
    })
    expect(scripts.filter((text) => text.includes('wallet_not_ready'))).toHaveLength(1)
    expect(scripts.filter((text) => text.includes('Symbol.for("react.'))).toEqual([])
    expect(await calls()).toEqual([])
    const to = createStranger()
    expect(await page.evaluate(() => window.plain.client.api.me())).toBeNull()
    expect(await sendPlainly(page, to)).toEqual({ code: 'not_authenticated', status: 401 })

    const returnTo = page.url()
    await page.goto(await page.evaluate(() => window.plain.client.loginUrl({ returnTo: window.location.href })))
    await chooseAccount(page, 'carol')
    await page.waitForURL(returnTo)
    await page.waitForFunction(() => 'plain' in window)
    expect(await page.evaluate(() => window.plain.client.api.me())).toMatchObject({ email: 'carol@example.com' })
    const wallet = await page.evaluate(() => window.plain.client.api.getWallet())
    await stack.fund(wallet?.address ?? expect.fail('no wallet'))
    const result = await sendPlainly(page, to)
    if (!('txHash' in result)) return expect.fail(JSON.stringify(result))
    expect(await readMined(stack, [result.txHash])).toMatchObject([{ status: 'success', to: to.toLowerCase() }])
    expect(await waitForProofs([result.attestationSlug])).toMatchObject([{ txHash: result.txHash }])
  })

  test('viem: createWalletClient sends with an account whose signatures come from the service', async () => {
    const context = await openBrowser()
    const { address } = await openSignedIn('carol', { context })
    const { page } = await openPlain(context)
    const to = createStranger()
    const send = (recipient: Address) => window.plain.sendWithViem({ to: recipient, ether: '0.01' })
    const { txHash, slugs } = await page.evaluate(send, to)
    expect(await readMined(stack, [txHash])).toMatchObject([{ status: 'success', from: address.toLowerCase() }])
    expect(await getBalance(to)).toBe(parseEther('0.01'))
    expect(await waitForProofs(slugs)).toMatchObject([{ txHash }])
  })

  // Last: the service stays down.
  test('§7 `logout` request fails: local state is cleared anyway; the caller may surface the error', async () => {
    const app = await openSignedIn('alice')
    await stack.backend.stopCoordinator('SIGKILL')
    await app.press('Sign out')
    expect(await app.waitForError()).toMatchObject({ code: 'network_unreachable' })
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
  })
})
