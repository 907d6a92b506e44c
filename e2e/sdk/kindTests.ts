import { computeCommitment, toPrefixedHex } from '@countersign/protocol'
import { type Address, concat, createWalletClient, getAddress, http, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { hardhat } from 'viem/chains'
import { parseSiweMessage, verifySiweMessage } from 'viem/siwe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from '../../apps/verifier/src/runCli.ts'
import { chooseAccount } from '../chooseAccount.ts'
import { waitForVerdict } from '../driveWeb.ts'
import { openProofPages } from '../openProofPages.ts'
import type { Harness } from './harness.ts'

/** The only code that the enclave's settings allow. */
export const IMPLEMENTATION: Address = '0x0000000000000000000000000000000000007702'
/** PUSH1 42, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN: returns 42 to every caller. */
const CODE = '0x602a5f5260205ff3'

export function testKinds(sdk: Harness) {
  /** The web app at an origin that the service doesn't know. */
  let pages: Awaited<ReturnType<typeof openProofPages>>
  beforeAll(async () => {
    const { backend, chain, contract } = sdk.stack
    const { chainId, url: rpcUrl } = chain
    const attestations = { chainId, rpcUrl, address: contract }
    pages = await openProofPages({ apiBaseUrl: backend.url, chainId, rpcUrl, attestations, allowMock: true })
  }, 60_000)
  afterAll(() => pages?.stop())

  /** Verifies on the page and with the page's link on the command line. Simulated: nothing failed, and nothing is proven about hardware. */
  async function expectVerified(slug: string, title: string): Promise<void> {
    const { chain, contract } = sdk.stack
    const link = `${pages.origin}/proof/${slug}`
    const page = await (await sdk.openBrowser()).newPage()
    await page.goto(link)
    expect(await waitForVerdict(page)).toBe('mock')
    await page.getByRole('heading', { name: title, exact: true }).waitFor()
    expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)

    const deps = { fetch: globalThis.fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
    const args = ['verify', link, '--rpc', chain.url, '--contract', contract]
    const { exitCode, stdout, stderr } = await runCli(deps, args)
    expect({ exitCode, stderr, fails: stdout.match(/✗/g) }).toEqual({ exitCode: 3, stderr: '', fails: null })
    expect(stdout).toContain(`Stated in the receipt: ${title}`)
  }

  test('wagmi: useSignMessage signs in with Ethereum, viem accepts it for this site only, and the opening belongs to its proof', async () => {
    const app = await sdk.open({ path: '/wagmi.html' })
    await app.press('Connect')
    await chooseAccount(app.page, 'dave')
    await app.see('wagmi').toMatchObject({ status: 'connected' })
    await app.press('Sign in with Ethereum')
    await app.see('wagmi').toMatchObject({ signIn: { signature: expect.stringMatching(/^0x/) }, error: null })
    const { address, signIn, slugs } = await app.read('wagmi')
    const { message, signature, opening } = signIn
    if (signature === null || opening === null) return expect.fail('no signature or no opening')
    const { nonce = '' } = parseSiweMessage(message)
    const asked = { message, signature, nonce, address: getAddress(address ?? '') }
    const { host: domain } = new URL(sdk.stack.origin)
    expect(await verifySiweMessage(sdk.stack.chainClient, { ...asked, domain })).toBe(true)
    expect(await verifySiweMessage(sdk.stack.chainClient, { ...asked, domain: 'evil.example' })).toBe(false)

    const [proof] = await sdk.waitForProofs(slugs)
    expect(proof).toMatchObject({ status: 'complete', kind: 'off-chain', chainId: 0 })
    expect(proof?.txHash).toBe(toPrefixedHex(computeCommitment(opening)))
    // Anyone could use a published sign-in.
    expect(JSON.stringify(proof)).not.toContain(signature.slice(2))
    expect(JSON.stringify(proof)).not.toContain(nonce)
    await expectVerified(slugs[0] ?? '', 'Off-chain signature')
  })

  test('EIP-7702: a viem account delegates only to code that the enclave allows', async () => {
    const { chain, chainClient, testClient, fund } = sdk.stack
    const context = await sdk.openBrowser()
    const { address: wallet } = await sdk.openSignedIn('erin', { context })
    const { page } = await sdk.openPlain(context)
    await testClient.setCode({ address: IMPLEMENTATION, bytecode: CODE })
    const nonce = await chainClient.getTransactionCount({ address: wallet })
    const authorize = (address: Address) => {
      const sign = (asked: { address: Address; nonce: number }) =>
        window.plain.authorizeWithViem(asked).catch(({ code }: { code: string }) => ({ code }))
      return page.evaluate(sign, { address, nonce })
    }

    expect(await authorize('0x000000000000000000000000000000000000dead')).toEqual({ code: 'authorization_not_allowed' })
    const authorized = await authorize(IMPLEMENTATION)
    if ('code' in authorized) return expect.fail(authorized.code)
    const { slugs, ...signature } = authorized
    const account = privateKeyToAccount(generatePrivateKey())
    await fund(account.address)
    const stranger = createWalletClient({ account, chain: hardhat, transport: http(chain.url) }).extend(publicActions)
    const authorizationList = [{ chainId: chain.chainId, address: IMPLEMENTATION, nonce, ...signature }]
    const hash = await stranger.sendTransaction({ to: account.address, authorizationList, gas: 200_000n })
    expect(await stranger.waitForTransactionReceipt({ hash, pollingInterval: 50 })).toMatchObject({ status: 'success' })
    expect(await chainClient.getCode({ address: wallet })).toBe(concat(['0xef0100', IMPLEMENTATION]))
    expect(await chainClient.call({ to: wallet })).toMatchObject({ data: `0x${'2a'.padStart(64, '0')}` })

    expect(await sdk.waitForProofs(slugs)).toMatchObject([
      { status: 'complete', kind: 'authorization', chainId: chain.chainId },
    ])
    await expectVerified(slugs[0] ?? '', 'Delegation to code')
  })
}
