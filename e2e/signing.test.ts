import type { Browser, Page } from 'playwright'
import { type Address, createPublicClient, getAddress, http, parseSignature } from 'viem'
import { createSiweMessage, generateSiweNonce, verifySiweMessage } from 'viem/siwe'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { deployToken } from './deployToken.ts'
import {
  addAuthenticator,
  approveElsewhere,
  makePasskeyText,
  makeVault,
  sendReviewed,
  writePayment,
} from './driveVaults.ts'
import { fund, type PageSignature, signContent, signIn, startSignIn, waitForVerdict } from './driveWeb.ts'
import { openPage } from './openPage.ts'
import { startBrowser } from './startBrowser.ts'
import { startDevStack } from './startDevStack.ts'

// Set by `npm run e2e`.
const { CHROMIUM_PATH: executablePath = '' } = process.env

const CHAIN_ID = 31337

let stack: Awaited<ReturnType<typeof startDevStack>>
let browser: Browser

/** A page with a signed-in user, and the wallet's address. */
async function openSignedIn(name: 'Alice' | 'Bob'): Promise<{ page: Page; address: Address }> {
  const page = await openPage(browser)
  await page.goto(stack.webUrl)
  await signIn(page, name)
  const shown = await page.locator('.address-groups').first().textContent()
  return { page, address: getAddress(shown ?? '') }
}

/** The command line's result for a proof, with the chain. */
async function verifyByCli(slug: string, options: readonly string[] = []): Promise<string> {
  const { attestations } = (await (await fetch(`${stack.webUrl}/config.json`)).json()) as {
    attestations: { rpcUrl: string; address: string }
  }
  const chain = ['--rpc', attestations.rpcUrl, '--contract', attestations.address]
  const deps = { fetch: globalThis.fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
  const args = ['verify', `${stack.apiUrl}/proof/${slug}`, ...chain, ...options]
  const { exitCode, stdout, stderr } = await runCli(deps, args)
  // Simulated: nothing failed, and nothing is proven about hardware.
  expect({ exitCode, stderr, fails: stdout.match(/✗/g) }).toEqual({ exitCode: 3, stderr: '', fails: null })
  return stdout
}

/** Verifies on the page and on the command line, with the opening and without. */
async function expectVerified(page: Page, { slug, openingFile }: PageSignature, title: string): Promise<void> {
  await page.goto(`${stack.webUrl}/proof/${slug}`)
  expect(await waitForVerdict(page)).toBe('mock')
  expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)
  await page.getByLabel('Opening file').setInputFiles(openingFile)
  await page.getByText(title).first().waitFor()
  expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)

  const proof = (await (await fetch(`${stack.apiUrl}/proof/${slug}`)).json()) as Record<string, unknown>
  expect(proof).toMatchObject({ status: 'complete', kind: 'off-chain', chainId: 0 })
  for (const options of [[], ['--opening', openingFile]]) {
    const stdout = await verifyByCli(slug, options)
    expect(stdout.includes(title)).toBe(options.length > 0)
  }
}

describe('off-chain signatures and vaults, on everything that npm run dev starts', () => {
  beforeAll(async () => {
    stack = await startDevStack({ isWebBuilt: true })
    browser = await startBrowser(executablePath)
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await stack?.stop()
  })

  test('a sign-in with Ethereum satisfies viem, and its proof shows it with the opening', async () => {
    const { page, address } = await openSignedIn('Alice')
    const site = { domain: 'shop.example', nonce: generateSiweNonce() }
    const message = createSiweMessage({
      ...site,
      address,
      chainId: CHAIN_ID,
      uri: 'https://shop.example/in',
      version: '1',
    })
    const signed = await signContent(page, { kind: 'Text', content: message })
    const client = createPublicClient({ transport: http(stack.chainUrl) })
    const { signature } = signed
    expect(await verifySiweMessage(client, { ...site, message, signature })).toBe(true)
    expect(await verifySiweMessage(client, { ...site, nonce: 'another1', message, signature })).toBe(false)
    await expectVerified(page, signed, 'Sign in with Ethereum: shop.example')
  }, 180_000)

  test('the demo site at a separate origin signs in with Ethereum, links to the proof, and signs out', async () => {
    const { page, address } = await openSignedIn('Alice')
    await page.getByRole('link', { name: 'Sign', exact: true }).click()
    await page.getByRole('link', { name: /demo site/ }).click()
    await page.getByRole('button', { name: 'Sign in with Ethereum' }).click()
    await page.getByText(`Signed in as ${address} at `).waitFor()
    expect(new URL(page.url()).origin).toBe(stack.demoUrl)
    await page.reload()
    await page.getByText(`Signed in as ${address} at `).waitFor()
    await page.getByRole('link', { name: 'View proof' }).click()
    expect(await waitForVerdict(page)).toBe('mock')
    expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)
    // The page's command returns a plain result.
    const command = (await page.locator('.command code').textContent()) ?? ''
    expect(command).toMatch(/^npm run verify -- \S/)
    const deps = { fetch: globalThis.fetch, timeoutMs: 10_000, now: () => new Date(), isColored: false }
    const { exitCode, stdout } = await runCli(deps, command.split(' ').slice(4))
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('Nothing failed, on MOCK evidence')])
    await page.goto(stack.demoUrl)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are not signed in.').waitFor()
    await page.reload()
    await page.getByText('You are not signed in.').waitFor()
    // The URL to which the wallet's sign-in returns. Any page can link to it, so it must not sign anything.
    const posts: string[] = []
    page.on('request', (request) => void (request.method() === 'POST' && posts.push(request.url())))
    await page.goto('about:blank')
    await page.goto(`${stack.demoUrl}/#sign-in`, { waitUntil: 'networkidle' })
    await page.getByText('You are not signed in.').waitFor()
    expect([page.url(), posts]).toEqual([`${stack.demoUrl}/`, []])
  }, 180_000)

  test('a visitor without a session signs in to the wallet on the way to the demo site', async () => {
    const page = await openPage(browser)
    await page.goto(stack.demoUrl)
    await page.getByRole('button', { name: 'Sign in with Ethereum' }).click()
    await page.getByRole('link', { name: 'Cancel and go back' }).click()
    await page.getByText('You did not sign in.').waitFor()
    expect(page.url()).toBe(`${stack.demoUrl}/`)
    await page.getByRole('button', { name: 'Sign in with Ethereum' }).click()
    await page.getByRole('link', { name: /\bBob\b/ }).click()
    await page.getByText(/Signed in as 0x/).waitFor()
    expect(page.url()).toBe(`${stack.demoUrl}/`)
  }, 180_000)

  test('a permit signed on the page lets another account take exactly the permitted tokens', async () => {
    const { page, address: owner } = await openSignedIn('Bob')
    const { stranger, token } = await deployToken({ chainUrl: stack.chainUrl, fund: stack.fund }, owner)
    const spender = stranger.account.address
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 86_400)
    const members = { owner: 'address', spender: 'address', value: 'uint256', nonce: 'uint256', deadline: 'uint256' }
    const typedData = {
      domain: { name: 'Permit Token', version: '1', chainId: CHAIN_ID, verifyingContract: token.address },
      types: { Permit: Object.entries(members).map(([name, type]) => ({ name, type })) },
      primaryType: 'Permit',
      message: { owner, spender, value: '400', nonce: '0', deadline: String(deadline) },
    }
    const signed = await signContent(page, { kind: 'Typed data', content: JSON.stringify(typedData) })
    const { r, s, v = 0n } = parseSignature(signed.signature)
    const call = { ...token, chain: stranger.chain, account: stranger.account }
    const more = stranger.simulateContract({
      ...call,
      functionName: 'permit',
      args: [owner, spender, 401n, deadline, Number(v), r, s],
    })
    await expect(more).rejects.toThrow('not signed by the owner')
    for (const hash of [
      await stranger.writeContract({
        ...call,
        functionName: 'permit',
        args: [owner, spender, 400n, deadline, Number(v), r, s],
      }),
      await stranger.writeContract({ ...call, functionName: 'transferFrom', args: [owner, spender, 400n] }),
    ]) {
      expect(await stranger.waitForTransactionReceipt({ hash, pollingInterval: 50 })).toMatchObject({
        status: 'success',
      })
    }
    const read = (account: Address) => stranger.readContract({ ...token, functionName: 'balanceOf', args: [account] })
    expect([await read(owner), await read(spender)]).toEqual([600n, 400n])
    await expectVerified(page, signed, 'Permit: a token allowance (EIP-2612)')
  }, 180_000)

  test('a vault pays up to its limit without approval, and above it with another device’s passkey, also after a lost session', async () => {
    const { page } = await openSignedIn('Alice')
    const phone = await openPage(browser)
    await Promise.all([addAuthenticator(page), addAuthenticator(phone)])
    const brought = await makePasskeyText(phone, stack.webUrl)
    const { address, policy } = await makeVault(page, { template: /^Approval above an amount/, limit: '0.1', brought })
    expect(policy.approvers).toHaveLength(2)
    await page.getByText('Download rules and attest address').click()
    await page.getByRole('button', { name: 'Attest address' }).click()
    const attested = page.getByRole('link', { name: 'View proof of the address' })
    const ofAddress = ((await attested.getAttribute('href')) ?? '').split('/').at(-1) ?? ''
    const [ownerFile] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Save the owner’s opening' }).click(),
    ])
    const ownerPath = await ownerFile.path()
    await fund(page)

    await writePayment(page, '0.05')
    await page.getByText('The vault’s rules allow this without approval.').waitFor()
    const small = await sendReviewed(page, '0.05')
    await page.getByRole('button', { name: 'Send another' }).click()

    await writePayment(page, '0.2')
    await page.getByText('Approve on another device').click()
    const link = (await page.getByRole('link', { name: 'Approval link' }).getAttribute('href')) ?? ''
    const approval = await approveElsewhere(phone, link, '0.2')
    await page.getByLabel('Approval text').fill(approval)
    await page.getByRole('button', { name: 'Add approval' }).click()
    await page.getByText('1 of 1 approval').waitFor()
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Sign and send 0.2 ETH' }).click()
    await startSignIn(page)
    await page.getByRole('link', { name: 'Sign in as Alice', exact: true }).click()
    await page.getByText('1 of 1 approval').waitFor()
    const large = await sendReviewed(page, '0.2')
    await page.getByRole('button', { name: 'Send another' }).click()

    await page.getByText('Contract call').click()
    await page.getByLabel('Data').fill('0xdeadbeef')
    await page.getByLabel('Gas limit').fill('50000')
    await writePayment(page, '0')
    await page.getByText('Rejected by the vault’s rules').waitFor()

    await page.goto(`${stack.webUrl}/proof/${large}`)
    expect(await waitForVerdict(page)).toBe('mock')
    expect(await page.locator('[data-step][data-status="fail"]').count()).toBe(0)
    for (const step of ['vault-policy', 'vault-rule', 'vault-approvals']) {
      expect(await page.locator(`[data-step="${step}"]`).getAttribute('data-status')).toBe('pass')
    }
    expect(await verifyByCli(large)).toMatch(/Approved by +passkey \d of 2, at localhost/)
    expect(await verifyByCli(small)).not.toContain('Approved by')
    expect(await verifyByCli(ofAddress)).toMatch(/: The address of a vault$.*^Owner +sealed$/ms)
    expect(await verifyByCli(ofAddress, ['--opening', ownerPath])).toMatch(/^Owner +alice@\S+ at http/m)
    const client = createPublicClient({ transport: http(stack.chainUrl) })
    expect(await client.getTransactionCount({ address: getAddress(address) })).toBe(2)
  }, 180_000)

  test('a service without a log creates no vault with a budget', async () => {
    const { page } = await openSignedIn('Bob')
    await page.goto(`${stack.webUrl}/vaults/new`)
    await page.getByRole('radio', { name: /^An agent with a budget/ }).click()
    await page.getByText('This service can’t count budgets').waitFor()
  }, 180_000)
})
