import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { getAddress, http } from 'viem'
import { sepolia } from 'viem/chains'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { render } from 'vitest-browser-react'
import { createConfig, useConnect, useConnection, useConnectors, useSendTransaction, WagmiProvider } from 'wagmi'
import { createTestService, type TestService } from '../testing/createTestService.ts'
import { serviceConnector } from './serviceConnector.ts'

const to = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'

let service: TestService
let uninstall: () => void
let logins: string[]
beforeEach(() => {
  localStorage.clear()
  logins = []
  service = createTestService({ chainId: sepolia.id, signedIn: false })
  uninstall = service.install()
})
afterEach(() => {
  uninstall()
  localStorage.clear()
})

/** What an app has: it knows nothing of the service but the connector. */
function Wallet() {
  const { address, status } = useConnection()
  const [connector] = useConnectors()
  const connect = useConnect()
  const send = useSendTransaction()
  return (
    <>
      <p>{status}</p>
      <p>{address ?? 'no account'}</p>
      <button type="button" onClick={() => connector && connect.mutate({ connector })}>
        Connect
      </button>
      <button type="button" onClick={() => send.mutate({ to, value: 7n })}>
        Send
      </button>
      <output>{send.data ?? send.error?.message ?? 'nothing sent'}</output>
    </>
  )
}

/** One load of the page; its storage is the browser's own. */
function loadPage() {
  const config = createConfig({
    chains: [sepolia],
    transports: { [sepolia.id]: http(service.config.rpcUrl) },
    connectors: [serviceConnector({ config: service.config, onLogin: (url) => void logins.push(url) })],
    multiInjectedProviderDiscovery: false,
  })
  return render(
    <WagmiProvider config={config}>
      <QueryClientProvider client={new QueryClient()}>
        <Wallet />
      </QueryClientProvider>
    </WagmiProvider>,
  )
}

test('useConnect redirects, the page that comes back is connected, and useSendTransaction sends', async () => {
  const before = await loadPage()
  await before.getByRole('button', { name: 'Connect' }).click()
  await expect.poll(() => logins).toHaveLength(1)
  expect(logins[0]).toBe(`https://service.test/auth/google?return_to=${encodeURIComponent(location.href)}`)
  await expect.element(before.getByText('disconnected')).toBeVisible()
  await before.unmount()

  service.signIn()
  const after = await loadPage()
  await expect.element(after.getByText(getAddress(service.wallet.address))).toBeVisible()
  await after.getByRole('button', { name: 'Send' }).click()
  await expect.poll(() => service.transactions).toHaveLength(1)
  const [sent] = service.transactions
  expect(sent).toMatchObject({ to, value: 7n, from: service.wallet.address })
  await expect.element(after.getByText(sent?.hash ?? 'none')).toBeVisible()
  expect(logins).toHaveLength(1)
})

test('a refusal of the service reaches the app in words', async () => {
  service.signIn()
  const page = await loadPage()
  await page.getByRole('button', { name: 'Connect' }).click()
  await expect.element(page.getByText(getAddress(service.wallet.address))).toBeVisible()
  service.failNext('POST /sign/digest', { code: 'rate_limited' })
  await page.getByRole('button', { name: 'Send' }).click()
  await expect.poll(() => page.getByRole('status').element().textContent).toContain('Too many requests')
  expect(service.transactions).toEqual([])
})
