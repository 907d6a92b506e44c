import { ServiceClient } from '@countersign/sdk/client'
import type { TestService } from '@countersign/sdk/testing'
import { getAddress, parseEther, toHex } from 'viem'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { confirm, recipient, review, TOKEN, write } from '../../test/send/sendForm.ts'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { closeWallet, FAUCET_URL, type OpenWalletOptions, openWallet } from '../../test/wallet/openWallet.tsx'

afterEach(closeWallet)

const WALLET = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'

async function signSome(service: TestService, count: number) {
  const client = new ServiceClient(service.config)
  for (let index = 0; index < count; index += 1) await client.signAndSend({ to: recipient, value: 1n })
}

/** A chain with this many blocks. The last one pays the wallet 0.75 ether. */
function payAt(head: number) {
  const last = `0x${head.toString(16)}`
  const payment = { hash: `0x${'22'.repeat(32)}`, from: recipient, to: WALLET, value: toHex(parseEther('0.75')) }
  return {
    eth_blockNumber: () => last,
    eth_getBalance: ([, tag]: readonly unknown[]) => toHex(parseEther(tag === last || tag === 'latest' ? '1.75' : '1')),
    eth_getBlockByNumber: ([tag]: readonly unknown[]) => ({
      number: tag,
      timestamp: toHex(Math.floor(Date.now() / 1000) - 120),
      baseFeePerGas: '0x1',
      transactions: tag === last ? [payment] : [],
    }),
    eth_getTransactionReceipt: () => ({ status: '0x1' }),
  }
}

/** Delays a response, so that short-lived states stay visible on any machine. */
function stopTime() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}

describe('sign-in', () => {
  test('shows one sentence, a sign-in button and a link to verify', async () => {
    const { screen } = await openWallet({ signedIn: false })
    await expect.element(screen.getByRole('button', { name: 'Sign in' })).toBeVisible()
    const main = screen.getByRole('main')
    await expect.element(main.getByRole('link', { name: 'Verify a proof' })).toHaveAttribute('href', '/verify')
    expect(screen.getByRole('heading', { name: 'Send' }).query()).toBeNull()
    await expectAccessible()
  })

  const icon = 'data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4='
  const listing = (...providers: object[]) => ({
    signedIn: false,
    intercept: (url: string) => (url.endsWith('/auth') ? Promise.resolve(Response.json({ providers })) : undefined),
  })

  test('shows a button with icon and name for each provider', async () => {
    const { screen } = await openWallet(
      listing({ id: 'google', name: 'Google', icon }, { id: 'apple', name: 'Apple', icon: 'https://x.example/i.png' }),
    )
    const google = screen.getByRole('button', { name: 'Continue with Google' })
    await expect.element(google).toBeVisible()
    await expect.element(screen.getByRole('button', { name: 'Continue with Apple' })).toBeVisible()
    const pictures = [...document.querySelectorAll('.sign-in img')].map((image) => image.getAttribute('src'))
    expect(pictures).toEqual([icon])
    expect(screen.getByRole('button', { name: 'Sign in' }).query()).toBeNull()
    await expectAccessible()
  })

  test('shows a cancelled sign-in once, as information', async () => {
    const path = '/?x=1&sign_in=cancelled'
    const { screen } = await openWallet({ session: 'none', ...listing({ id: 'google', name: 'Google', icon }), path })
    await expect.element(screen.getByText('Sign-in cancelled')).toBeVisible()
    expect(screen.getByText(/cookie/).query()).toBeNull()
    expect(window.location.search).toBe('?x=1')
    await expectAccessible()
  })

  test('shows skeletons with text for screen readers while loading', async () => {
    const { screen } = await openWallet({ intercept: () => new Promise(() => {}) })
    await expect.element(screen.getByText('Checking your session…')).toBeInTheDocument()
    expect(screen.getByRole('button', { name: 'Sign in' }).query()).toBeNull()
    await expectAccessible()
  })

  test('shows name, balance, address with checksum, and its QR code', async () => {
    const { screen, service } = await openWallet({ balance: parseEther('1234.5678901') })
    await expect.element(screen.getByText('1\u202f234.56789 ETH')).toBeVisible()
    await expect.element(screen.getByText('Test User')).toBeVisible()
    await expect.element(screen.getByText(getAddress(service.wallet.address))).toBeVisible()
    expect(screen.getByRole('img', { name: 'QR code of your address' }).query()).toBeNull()
    await screen.getByRole('button', { name: 'Receive' }).click()
    await expect.element(screen.getByRole('img', { name: 'QR code of your address' })).toBeVisible()
    await screen.getByText('How this wallet was created').click()
    await expect.element(screen.getByText(service.wallet.provenance.entropyHash)).toBeVisible()
    await expect.element(screen.getByText(service.wallet.provenance.entropySig)).toBeVisible()
    expect(screen.getByRole('button', { name: /faucet/ }).query()).toBeNull()
    await expectAccessible()
  })

  test('copies the full address', async () => {
    const copied = vi.spyOn(navigator.clipboard, 'writeText').mockResolvedValue()
    const { screen, service } = await openWallet()
    stopTime()
    await screen.getByRole('button', { name: 'Copy your address' }).click()
    expect(copied).toHaveBeenCalledWith(getAddress(service.wallet.address))
    await expect.element(screen.getByText('Copied your address')).toBeInTheDocument()
    copied.mockRejectedValue(new Error('no'))
    document.querySelector<HTMLElement>('.copy-button')?.click()
    await expect
      .element(screen.getByText('Couldn’t copy your address. Select it and copy it manually.'))
      .toBeInTheDocument()
    copied.mockRestore()
  })

  test('warns about simulated hardware only', async () => {
    const { screen } = await openWallet({ mode: 'mock' })
    await expect.element(screen.getByRole('complementary', { name: 'Simulated hardware' })).toBeVisible()
    closeWallet()
    await screen.unmount()
    const { screen: other } = await openWallet({ mode: 'hardware' })
    await expect.element(other.getByText(/ETH$/).first()).toBeVisible()
    expect(other.getByRole('complementary').query()).toBeNull()
  })

  test('ends the session on sign-out and moves the focus', async () => {
    const { screen, service } = await openWallet()
    await screen.getByRole('button', { name: 'Sign out' }).click()
    await expect.element(screen.getByText('You’re signed out')).toBeVisible()
    await expect.element(screen.getByRole('heading', { level: 1 })).toHaveFocus()
    expect(service.requests).toContain('POST /auth/logout')
    await expectAccessible()
  })

  test('reports a sign-out that didn’t reach the service', async () => {
    const { screen, service } = await openWallet()
    service.failNext('POST /auth/logout', 'network')
    await screen.getByRole('button', { name: 'Sign out' }).click()
    await expect.element(screen.getByText('You’re signed out on this page only')).toBeVisible()
  })
})

describe('faucet', () => {
  test('funds this address and reloads the balance', async () => {
    const asked: string[] = []
    const faucet = (address: string) => {
      asked.push(address)
      return Response.json({ txHash: `0x${'11'.repeat(32)}` })
    }
    const { screen, service } = await openWallet({ config: { faucetUrl: FAUCET_URL }, faucet })
    await screen.getByRole('button', { name: 'Get test ETH' }).click()
    await expect.element(screen.getByText('The faucet sent 1 ETH.')).toBeVisible()
    expect(asked).toEqual([getAddress(service.wallet.address)])
    await expect
      .poll(() => service.requests.filter((request) => request === 'eth_getBalance').length)
      .toBeGreaterThan(1)
  })

  test('is the first step of an empty wallet', async () => {
    const faucet = () => Response.json({ txHash: `0x${'11'.repeat(32)}` })
    const { screen } = await openWallet({ balance: 0n, config: { faucetUrl: FAUCET_URL }, faucet })
    await expect.element(screen.getByText(/no ETH yet.*faucet for free/)).toBeVisible()
    const button = screen.getByRole('button', { name: 'Get test ETH' })
    await expect.element(button).not.toHaveClass('button-quiet')
    await expectAccessible()
    await screen.getByRole('button', { name: 'Max' }).click()
    await expect.element(screen.getByText('The balance is 0 ETH.')).toBeVisible()
  })
})

describe('history', () => {
  test('loads older pages on request, each transaction once', async () => {
    const prepare = async (service: TestService) => {
      await signSome(service, 23)
      service.completeProofs()
    }
    const { screen, service } = await openWallet({ prepare })
    const rows = () => screen.getByRole('link', { name: /^Sent to/ })
    await expect.poll(() => rows().all()).toHaveLength(10)
    await screen.getByRole('button', { name: 'Show older' }).click()
    await expect.poll(() => rows().all()).toHaveLength(20)
    await screen.getByRole('button', { name: 'Show older' }).click()
    await expect.poll(() => rows().all()).toHaveLength(23)
    expect(screen.getByRole('button', { name: 'Show older' }).query()).toBeNull()
    const links = rows()
      .all()
      .map((row) => row.element().getAttribute('href'))
    expect(links).toEqual(service.proofs.map(({ slug }) => `/proof/${slug}`).reverse())
    await expectAccessible()
  })

  test('polls pending proofs until they finish, without reloading the list', async () => {
    const { screen, service } = await openWallet({ prepare: (service) => signSome(service, 1) })
    await expect.element(screen.getByText('Pinning')).toBeVisible()
    await expect.poll(() => service.requests).toContain('GET /proof/:slug')
    service.completeProofs()
    await expect.element(screen.getByText('Proof public')).toBeVisible()
    const lists = service.requests.filter((request) => request === 'GET /wallet/transactions')
    expect(lists).toHaveLength(1)
  })

  test('polls only the newest six of many pending proofs', async () => {
    // Each repeatedly: on a slow machine, more than once.
    const asked = new Set<string>()
    const intercept = (url: string) => {
      const [, slug] = /\/proof\/([^/]+)$/.exec(url) ?? []
      if (slug !== undefined) asked.add(slug)
      return undefined
    }
    const { screen, service } = await openWallet({ intercept, prepare: (service) => signSome(service, 9) })
    await expect.poll(() => screen.getByText('Pinning').all()).toHaveLength(9)
    const newest = service.proofs.slice(-6).map(({ slug }) => slug)
    await expect.poll(() => asked).toEqual(new Set(newest))
  })

  test('marks a signed transaction that was never sent', async () => {
    const prepare = async (service: TestService) => {
      service.failNext('eth_sendRawTransaction', {
        code: -32000,
        message: 'insufficient funds for gas * price + value',
      })
      await signSome(service, 1).catch(() => {})
      const later = Date.now() + 3_600_000
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => later)
      onTestFinished(() => clock.mockRestore())
    }
    const { screen } = await openWallet({ prepare })
    const row = screen.getByRole('link', { name: /^Sent to 0x709979…dc79C8.*1 hour ago.*ETH.*Not broadcast/ })
    await expect.element(row).toBeVisible()
    await expectAccessible()
  })

  test('says “may have been paid” if the nonce is used but the transaction is unknown, and retries', async () => {
    const rpc: Record<string, () => unknown> = {
      eth_getTransactionReceipt: () => null,
      eth_getTransactionByHash: () => null,
    }
    const { screen } = await openWallet({ rpc, prepare: (service) => signSome(service, 1) })
    const row = screen.getByRole('link', { name: /^Sent to 0x709979…dc79C8.*ETH May have been paid/ })
    await expect.element(row).toBeVisible()
    expect(document.querySelector('.history-void')).toBeNull()
    await expectAccessible()
    // The node has caught up.
    rpc.eth_getTransactionReceipt = () => ({ status: '0x1' })
    document.dispatchEvent(new Event('visibilitychange'))
    await expect.element(row).not.toBeInTheDocument()
  })

  test('shows incoming payments and the searched blocks', async () => {
    const rpc = payAt(5)
    const { screen } = await openWallet({ rpc, config: { explorerUrl: 'https://explorer.test' } })
    const row = screen.getByRole('link', { name: /^Received from 0x709979…dc79C8 .* \+0\.75 ETH$/ })
    await expect.element(row).toHaveAttribute('href', `https://explorer.test/tx/0x${'22'.repeat(32)}`)
    await expect.element(screen.getByText(/searched the whole chain/)).toBeVisible()
    await expectAccessible()
    // After a page change, found payments are still there, even if the node fails.
    rpc.eth_blockNumber = () => {
      throw { code: -32000, message: 'no' }
    }
    await screen.getByRole('link', { name: 'Verify', exact: true }).click()
    await screen.getByRole('link', { name: 'Wallet', exact: true }).click()
    await expect.element(screen.getByText(/can’t search past blocks/)).toBeVisible()
    await expect.element(row).toBeVisible()
  })

  test('sends no queries while the page is hidden', async () => {
    const visibility = vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden')
    onTestFinished(() => visibility.mockRestore())
    const { screen, service } = await openWallet({ rpc: payAt(5) })
    await expect.element(screen.getByText(/No activity yet/)).toBeVisible()
    const asked = () => service.requests.filter((request) => request === 'eth_blockNumber')
    expect(asked()).toEqual([])
    visibility.mockReturnValue('visible')
    document.dispatchEvent(new Event('visibilitychange'))
    await expect.element(screen.getByText('+0.75 ETH')).toBeVisible()
    expect(asked()).toHaveLength(1)
  })

  test('reports a node without past blocks, and retries only on request', async () => {
    const node = payAt(5)
    const rpc = {
      ...node,
      eth_getBalance: ([, tag]: readonly unknown[]) => {
        if (tag !== 'latest') throw { code: -32000, message: 'missing trie node' }
        return '0x1'
      },
    }
    const { screen } = await openWallet({ rpc })
    await expect.element(screen.getByText(/can’t search past blocks/)).toBeVisible()
    rpc.eth_getBalance = node.eth_getBalance
    await screen.getByRole('button', { name: 'Search again' }).click()
    await expect.element(screen.getByText('+0.75 ETH')).toBeVisible()
  })
})

describe('when things fail', () => {
  test('recovers when the service comes back', async () => {
    const prepare = (service: TestService) => service.failNext('GET /auth/me', 'network')
    const { screen } = await openWallet({ prepare })
    await expect.element(screen.getByText('The service is unavailable')).toBeVisible()
    expect(screen.getByRole('button', { name: 'Sign in' }).query()).toBeNull()
    await expectAccessible()
    await screen.getByRole('button', { name: 'Try again' }).click()
    await expect.element(review(screen)).toBeVisible()
  })

  test('reports a wallet that couldn’t be created', async () => {
    const prepare = (service: TestService) =>
      service.failNext('POST /wallet/provision', { code: 'enclave_unavailable' })
    const { screen } = await openWallet({ provisioned: false, prepare })
    await expect.element(screen.getByText('The key enclave is unavailable')).toBeVisible()
    await expect.element(screen.getByRole('button', { name: 'Sign out' })).toBeVisible()
    await screen.getByRole('button', { name: 'Try again' }).click()
    await expect.element(review(screen)).toBeVisible()
  })

  test('explains the hosting setup for a blocked cookie', async () => {
    const key = 'countersign:login:https://service.test'
    const prepare = () => sessionStorage.setItem(key, String(Date.now()))
    const { screen } = await openWallet({ signedIn: false, prepare })
    await expect.element(screen.getByText('Your browser blocked the sign-in cookie')).toBeVisible()
    await expect.element(screen.getByText(/put both under one domain, such as app\.example\.com/)).toBeVisible()
    await expect.element(screen.getByRole('button', { name: 'Sign in' })).toBeVisible()
    await expectAccessible()
  })

  test('handles a session that ends during confirmation', async () => {
    const { screen, service } = await openWallet()
    await write(screen, {})
    await expect.element(confirm(screen)).toBeVisible()
    service.signOut()
    await confirm(screen).click()
    await expect.element(screen.getByText('Your session has ended')).toBeVisible()
    await expect.element(screen.getByRole('button', { name: 'Sign in' })).toBeVisible()
    expect(service.transactions).toEqual([])
  })

  test('reports a failed node at the balance and offers a retry', async () => {
    // Each query is sent twice.
    const prepare = (service: TestService) => {
      service.failNext('eth_getBalance', 'network')
      service.failNext('eth_getBalance', 'network')
    }
    const { screen } = await openWallet({ prepare })
    await expect.element(screen.getByText('The node returned an error')).toBeVisible()
    await expectAccessible()
    await screen.getByRole('button', { name: 'Reload balance' }).click()
    await expect.element(screen.getByText('10\u202f000 ETH')).toBeVisible()
    expect(screen.getByText('The node returned an error').query()).toBeNull()
  })
})

describe('navigation', () => {
  const options: OpenWalletOptions = { path: '/no/such/page' }

  test('shows help for an unknown path, and a link changes page, title and focus', async () => {
    const { screen } = await openWallet(options)
    await expect.element(screen.getByRole('heading', { name: 'Page not found' })).toBeVisible()
    await expectAccessible()
    await screen.getByRole('link', { name: 'Go to your wallet' }).click()
    await expect.element(review(screen)).toBeVisible()
    expect(window.location.pathname).toBe('/')
    expect(document.title).toBe('Wallet · Countersign')
    await expect.element(screen.getByRole('main')).toHaveFocus()
    window.history.back()
    await expect.element(screen.getByRole('heading', { name: 'Page not found' })).toBeVisible()
  })

  test('stores the theme', async () => {
    document.documentElement.dataset.theme = 'light'
    const { screen } = await openWallet(options)
    const before = getComputedStyle(document.documentElement).backgroundColor
    await screen.getByRole('button', { name: 'Switch to dark theme' }).click()
    expect(getComputedStyle(document.documentElement).backgroundColor).not.toBe(before)
    expect(localStorage.getItem('countersign:theme')).toBe('dark')
    await expect.element(screen.getByRole('button', { name: 'Switch to light theme' })).toBeVisible()
  })

  test('is never wider than a small phone', async () => {
    const { page } = await import('vitest/browser')
    await page.viewport(320, 640)
    onTestFinished(() => page.viewport(414, 896))
    const prepare = async (service: TestService) => {
      await signSome(service, 2)
      await new ServiceClient(service.config).signMessage({ message: 'x' })
    }
    const { screen } = await openWallet({ mode: 'mock', prepare, config: { faucetUrl: FAUCET_URL, tokens: [TOKEN] } })
    await expect.element(screen.getByText('Off-chain signature')).toBeVisible()
    await screen.getByText('How this wallet was created').click()
    await screen.getByRole('button', { name: 'Receive' }).click()
    await expect.element(screen.getByRole('img', { name: 'QR code of your address' })).toBeVisible()
    expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(320)
    await write(screen, { amount: '0.000000000000000001' })
    await expect.element(confirm(screen)).toBeVisible()
    expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(320)
  })
})
