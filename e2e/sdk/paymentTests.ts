import { parseEther } from 'viem'
import { expect, onTestFinished, test } from 'vitest'
import { expectPublished } from '../expectPublished.ts'
import { readMined } from '../readMined.ts'
import { createStranger, type Harness } from './harness.ts'

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

export function testPayments(sdk: Harness) {
  const { open, openBrowser, openSignedIn, waitForProofs, getBalance, countSent } = sdk

  test('§4 signAndSend broadcasts; §8 useAttestation polls 4 seconds after the previous response and stops on `complete`', async () => {
    const app = await openSignedIn('alice')
    const { page } = app
    const to = createStranger()
    // Without new blocks, nothing is confirmed, so the first polls can't find a complete proof.
    await sdk.stack.testClient.setAutomine(false)
    onTestFinished(() => sdk.stack.testClient.setAutomine(true))
    const signing = Promise.withResolvers<void>()
    await page.route('**/sign/digest', async (route) => {
      await signing.promise
      await route.continue()
    })
    const polling = Promise.withResolvers<void>()
    await page.route('**/proof/*', async (route) => {
      await polling.promise
      await route.continue()
    })
    await page.clock.install()
    await app.pay({ to, ether: '0.01' })
    await app.see('useSign').toEqual({ pending: true, error: null, lastResult: null })
    expect(await app.read('useAttestation')).toEqual({ proof: null, loading: false, error: null })
    signing.resolve()
    const [lastResult = expect.fail('no result')] = await app.waitForResults(1)
    const { txHash, attestationSlug: slug } = lastResult
    expect(await app.read('useSign')).toEqual({ pending: false, error: null, lastResult })

    // From here on, the test moves the page's clock.
    await page.clock.pauseAt(Date.now() + 1_000)
    const countPolls = () => app.requests.filter((request) => request.url().includes(slug)).length
    const pollAfter = async (ms: number) => {
      await page.clock.runFor(ms)
      // A poll would have arrived before the response to this.
      await page.evaluate(() => fetch('/'))
      return countPolls()
    }
    await app.see('useAttestation').toMatchObject({ proof: null, loading: true })
    // The interval starts with the response, not with the request.
    expect(await pollAfter(8_000)).toBe(1)
    polling.resolve()
    await app
      .see('useAttestation')
      .toMatchObject({ proof: { status: expect.stringMatching(/^pending_/) }, loading: false })
    expect(await pollAfter(3_999)).toBe(1)
    expect(await pollAfter(1)).toBe(2)
    await app
      .see('useAttestation')
      .toMatchObject({ proof: { status: expect.stringMatching(/^pending_/) }, loading: false })

    await sdk.stack.testClient.setAutomine(true)
    await sdk.stack.chain.mine(2)
    expect(await readMined(sdk.stack, [txHash])).toMatchObject([{ status: 'success', from: app.address.toLowerCase() }])
    expect(await getBalance(to)).toBe(parseEther('0.01'))
    await waitForProofs([slug])
    expect(await pollAfter(3_999)).toBe(2)
    expect(await pollAfter(1)).toBe(3)
    await app.see('useAttestation').toMatchObject({ proof: { status: 'complete' }, loading: false, error: null })
    const { proof } = await app.read('useAttestation')
    expect(proof).toMatchObject({ slug, txHash, receipt: { transaction: { value: '10000000000000000' } } })
    await expectPublished(sdk.stack, proof ?? expect.fail('no proof'))
    expect(await pollAfter(60_000)).toBe(3)
  })

  test('§7 `gas` too low for a contract call: the broadcast fails; §4 `error` is cleared on the next invocation', async () => {
    const app = await openSignedIn('alice')
    const before = await countSent(app.address)
    await app.pay({ to: sdk.stack.contract, data: `0x${'ab'.repeat(68)}` })
    const error = await app.waitForError()
    expect(error).toMatchObject({ code: 'rpc_gas_rejected', signed: { attestationSlug: expect.any(String) } })
    expect(await app.read('useSign')).toEqual({ pending: false, error, lastResult: null })
    expect(await countSent(app.address)).toBe(before)
    const hash = error.signed?.txHash ?? '0x'
    await expect(sdk.stack.chainClient.getTransaction({ hash })).rejects.toThrow('could not be found')
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
    const mined = await readMined(sdk.stack, hashes)
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
      sdk.stack,
      results.flat().map(({ txHash }) => txHash),
    )
    expect(mined.map(({ nonce }) => nonce)).toEqual(range(10))
    expect(await getBalance(to)).toBe(parseEther('0.1'))
  })
}
