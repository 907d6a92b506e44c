import { type Address, getAddress, type Hash, parseEther } from 'viem'
import { expect, test } from 'vitest'
import { chooseAccount } from '../chooseAccount.ts'
import { readMined } from '../readMined.ts'
import { createStranger, type Harness, sendPlainly } from './harness.ts'

export function testOtherClients(sdk: Harness) {
  const { open, openBrowser, openSignedIn, openPlain, waitForProofs, getBalance } = sdk

  test('wagmi: useConnect leads through the sign-in, useSendTransaction pays, and a reload is connected without asking', async () => {
    const context = await openBrowser()
    const app = await open({ context, path: '/wagmi.html' })
    await app.see('wagmi').toMatchObject({ status: 'disconnected', address: null })
    await app.press('Connect')
    await chooseAccount(app.page, 'bob')
    await app.see('wagmi').toMatchObject({ status: 'connected' })
    const address = getAddress((await app.read('wagmi')).address ?? '')
    await sdk.stack.fund(address)
    const to = createStranger()
    await app.page.getByLabel('To').fill(to)
    await app.press('Pay')
    await app.see('wagmi').toMatchObject({ txHash: expect.stringMatching(/^0x/), error: null })
    const { txHash, slugs } = await app.read('wagmi')
    expect(await readMined(sdk.stack, [txHash as Hash])).toMatchObject([
      { status: 'success', from: address.toLowerCase() },
    ])
    expect(await getBalance(to)).toBe(parseEther('0.01'))
    expect(await waitForProofs(slugs)).toMatchObject([{ txHash }])

    const findSignIns = (calls: readonly string[]) => calls.filter((call) => /^GET \/auth(?:\/google)? /.test(call))
    expect(findSignIns(await app.calls())).toEqual(['GET /auth 302', 'GET /auth/google 302'])
    const before = app.requests.length
    await app.page.reload()
    await app.see('wagmi').toMatchObject({ status: 'connected', address })
    expect(findSignIns((await app.calls()).slice(before))).toEqual([])
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
    await sdk.stack.fund(wallet?.address ?? expect.fail('no wallet'))
    const result = await sendPlainly(page, to)
    if (!('txHash' in result)) return expect.fail(JSON.stringify(result))
    expect(await readMined(sdk.stack, [result.txHash])).toMatchObject([{ status: 'success', to: to.toLowerCase() }])
    expect(await waitForProofs([result.attestationSlug])).toMatchObject([{ txHash: result.txHash }])
  })

  test('viem: createWalletClient sends with an account whose signatures come from the service', async () => {
    const context = await openBrowser()
    const { address } = await openSignedIn('carol', { context })
    const { page } = await openPlain(context)
    const to = createStranger()
    const send = (recipient: Address) => window.plain.sendWithViem({ to: recipient, ether: '0.01' })
    const { txHash, slugs } = await page.evaluate(send, to)
    expect(await readMined(sdk.stack, [txHash])).toMatchObject([{ status: 'success', from: address.toLowerCase() }])
    expect(await getBalance(to)).toBe(parseEther('0.01'))
    expect(await waitForProofs(slugs)).toMatchObject([{ txHash }])
  })
}
