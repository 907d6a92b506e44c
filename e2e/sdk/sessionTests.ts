import { expect, test } from 'vitest'
import { chooseAccount } from '../chooseAccount.ts'
import { forgeCalls } from '../forgeCalls.ts'
import { createStranger, type Harness, SESSION, SIGNED_OUT, sendPlainly } from './harness.ts'

export function testSessions(sdk: Harness) {
  const { open, openBrowser, openSignedIn, openPlain } = sdk

  // First, before any sample of entropy is prefetched.
  test('§7 wallet lookup answers 404: the provider provisions a wallet; signAndSend while it is null: wallet_not_ready', async () => {
    const context = await openBrowser()
    const app = await open({ context })
    sdk.stack.backend.satellite.setFault('error')
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

    sdk.stack.backend.satellite.setFault()
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

    expect(page.url()).toBe(`${sdk.stack.origin}/?basket=7#checkout`)
    expect(await page.getByLabel('To').inputValue()).toBe('')
    expect(context.pages()).toHaveLength(1)
    const started = requests.find((request) => new URL(request.url()).pathname === '/auth/google')
    expect([started?.isNavigationRequest(), started?.frame() === page.mainFrame()]).toEqual([true, true])
    expect(new URL(started?.url() ?? '').searchParams.get('return_to')).toBe(page.url())
    // The SDK names no provider. The service redirects to its first one and keeps the query.
    const { pathname, search } = new URL(started?.redirectedFrom()?.url() ?? '')
    expect([pathname, search]).toEqual(['/auth', new URL(started?.url() ?? '').search])

    const cookies = await context.cookies(sdk.stack.backend.url)
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
    // The wallet was created with the session, so the page has nothing to provision.
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

  test('§4 logout calls `POST /auth/logout`, then clears local user and wallet', async () => {
    const context = await openBrowser()
    const app = await openSignedIn('alice', { context })
    await app.press('Sign out')
    expect(await app.waitForOutcomes()).toEqual([{ value: null }])
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
    expect((await app.calls()).at(-1)).toBe('POST /auth/logout 200')
    const cookies = await context.cookies(sdk.stack.backend.url)
    expect(cookies.filter(({ name }) => name === SESSION)).toEqual([])
    await app.press('Refresh')
    await expect.poll(async () => (await app.calls()).at(-1)).toBe('GET /auth/me 401')
    expect(await app.waitForOutcomes()).toEqual([{ value: null }])
    expect(await app.read('useService')).toEqual(SIGNED_OUT)
  })

  test('§5.4 the browser origin must be in the CORS allow-list: a page of another can neither read nor sign', async () => {
    const context = await openBrowser()
    const home = await openSignedIn('alice', { context })
    const foreign = await open({ context, origin: sdk.stack.foreignOrigin })
    expect(await foreign.waitUntilReady()).toMatchObject({
      user: null,
      wallet: null,
      error: { code: 'network_unreachable', details: expect.stringContaining('CORS') },
    })
    await foreign.pay({ to: createStranger() })
    expect(await foreign.waitForError()).toMatchObject({ code: 'wallet_not_ready' })

    // Also without the SDK: the page is on the same site, so these calls include the cookie.
    const { url } = sdk.stack.backend
    const countSigned = async () => {
      const response = await context.request.get(`${url}/wallet/transactions?limit=100`)
      return ((await response.json()) as { transactions: unknown[] }).transactions.length
    }
    const before = await countSigned()
    expect(await forgeCalls(foreign.page, url)).toEqual(['refused', 'refused', 'refused'])
    expect(await countSigned()).toBe(before)
    // The app's own page gets a response, so the origin made the difference.
    expect((await forgeCalls(home.page, url)).slice(0, 2)).toEqual([200, 200])
    expect(await countSigned()).toBe(before + 1)

    // The redirect to the first provider also checks the return page.
    await foreign.press('Sign in')
    await foreign.page.waitForURL(`${url}/auth/google?**`)
    expect(await foreign.page.textContent('body')).toContain('return_to')
    expect((await foreign.calls()).slice(-2)).toEqual(['GET /auth 302', 'GET /auth/google 400'])
  })

  test('§5.1 where the browser keeps the cookie from the app as a third party’s, useService().error says cookie_blocked', async () => {
    const app = await open({ origin: sdk.stack.crossSiteOrigin })
    expect(await app.waitUntilReady()).toMatchObject({ user: null, error: null })
    await app.press('Sign in')
    await chooseAccount(app.page, 'alice')
    await app.page.waitForURL(`${sdk.stack.crossSiteOrigin}/`)
    expect(await app.waitUntilReady()).toMatchObject({
      user: null,
      wallet: null,
      error: { code: 'cookie_blocked', details: expect.stringContaining(sdk.stack.backend.url) },
    })
  })
}
