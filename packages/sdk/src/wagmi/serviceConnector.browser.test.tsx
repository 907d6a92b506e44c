import { computeCommitment, toHex } from '@countersign/protocol'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { getAddress, type Hex, http, verifyMessage } from 'viem'
import { sepolia } from 'viem/chains'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { render } from 'vitest-browser-react'
import {
  createConfig,
  useCallsStatus,
  useCapabilities,
  useConnect,
  useConnection,
  useConnectors,
  useSendCalls,
  useSendTransaction,
  useSignMessage,
  WagmiProvider,
} from 'wagmi'
import { installTestService } from '../../test/testing/installTestService.ts'
import type { SignedEvent } from '../client/connection.ts'
import type { TestService } from '../testing/testService.ts'
import { serviceConnector } from './serviceConnector.ts'

const to = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'

let service: TestService
let logins: string[]
let signed: SignedEvent[]
beforeEach(() => {
  localStorage.clear()
  logins = []
  signed = []
  service = installTestService({ chainId: sepolia.id, signedIn: false })
})
afterEach(() => localStorage.clear())

/** An app that uses the service only through the connector. */
function Wallet() {
  const { address, status } = useConnection()
  const [connector] = useConnectors()
  const connect = useConnect()
  const send = useSendTransaction()
  const sign = useSignMessage()
  const batch = useSendCalls()
  const id = batch.data?.id ?? ''
  const sentCalls = useCallsStatus({ id, query: { enabled: id !== '', refetchInterval: 50 } })
  const capabilities = useCapabilities({ query: { enabled: status === 'connected' } })
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
      <button type="button" onClick={() => sign.mutate({ message: 'I agree.' })}>
        Sign
      </button>
      <p>{sign.data ?? sign.error?.message ?? 'nothing signed'}</p>
      <button
        type="button"
        onClick={() =>
          batch.mutate({
            calls: [
              { to, value: 7n },
              { to, value: 8n },
            ],
          })
        }
      >
        Send both
      </button>
      <p>batch: {sentCalls.data?.status ?? batch.error?.message ?? 'none'}</p>
      <p>atomic: {capabilities.data?.[sepolia.id]?.atomic?.status ?? 'unknown'}</p>
      <output>{send.data ?? send.error?.message ?? 'nothing sent'}</output>
    </>
  )
}

/** One page load, with the browser's storage. */
function loadPage() {
  const config = createConfig({
    chains: [sepolia],
    transports: { [sepolia.id]: http(service.config.rpcUrl) },
    connectors: [
      serviceConnector({
        config: service.config,
        onLogin: (url) => void logins.push(url),
        onSigned: (event) => void signed.push(event),
      }),
    ],
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

test('useConnect redirects, the next page load is connected, and useSendTransaction sends', async () => {
  const before = await loadPage()
  await before.getByRole('button', { name: 'Connect' }).click()
  await expect.poll(() => logins).toHaveLength(1)
  expect(logins[0]).toBe(`https://service.test/auth?return_to=${encodeURIComponent(location.href)}`)
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

test('the app gets the message of the service’s error', async () => {
  service.signIn()
  const page = await loadPage()
  await page.getByRole('button', { name: 'Connect' }).click()
  await expect.element(page.getByText(getAddress(service.wallet.address))).toBeVisible()
  service.failNext('POST /sign/digest', { code: 'rate_limited' })
  await page.getByRole('button', { name: 'Send' }).click()
  await expect.poll(() => page.getByRole('status').element().textContent).toContain('Too many requests')
  expect(service.transactions).toEqual([])
})

test('useSendCalls, useCallsStatus and useCapabilities work unmodified', async () => {
  service.signIn()
  const page = await loadPage()
  await page.getByRole('button', { name: 'Connect' }).click()
  await expect.element(page.getByText('atomic: unsupported')).toBeVisible()
  await page.getByRole('button', { name: 'Send both' }).click()
  await expect.element(page.getByText('batch: success')).toBeVisible()
  expect(service.transactions.map(({ to, value }) => ({ to, value }))).toEqual([7n, 8n].map((value) => ({ to, value })))
})

test('useSignMessage signs, and the app gets the opening', async () => {
  service.signIn()
  const page = await loadPage()
  await page.getByRole('button', { name: 'Connect' }).click()
  await expect.element(page.getByText(getAddress(service.wallet.address))).toBeVisible()
  await page.getByRole('button', { name: 'Sign' }).click()
  await expect.poll(() => signed).toHaveLength(1)
  const [event] = signed
  if (event?.kind !== 'off-chain' || typeof event.opening.signature === 'string') return expect.fail('no opening')
  const { signature } = event.opening.signature
  await expect.element(page.getByText(signature)).toBeVisible()
  const { address } = service.wallet
  expect(await verifyMessage({ address, message: 'I agree.', signature: signature as Hex })).toBe(true)
  expect(service.proofs).toMatchObject([{ slug: event.slug, txHash: `0x${toHex(computeCommitment(event.opening))}` }])
})
