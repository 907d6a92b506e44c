import type { Hex } from '@countersign/protocol'
import { type BaseError, getAddress, http, SwitchChainError } from 'viem'
import { mainnet, sepolia } from 'viem/chains'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ChainNotConfiguredError, type Config, createConfig, createStorage } from 'wagmi'
import { connect, disconnect, getConnection, reconnect, sendTransaction, signMessage, switchChain } from 'wagmi/actions'
import { mock } from 'wagmi/connectors'
import { installTestService } from '../../test/testing/installTestService.ts'
import { rule } from '../../test/vaults/vaults.ts'
import { ServiceClient } from '../client/ServiceClient.ts'
import type { TestService, TestServiceOptions } from '../testing/testService.ts'
import { isVaultError } from '../vaults/errors.ts'
import { toVaultClient } from '../vaults/toVaultClient.ts'
import { createVault } from '../vaults/vaultCalls.ts'
import { type ServiceConnectorParameters, serviceConnector } from './serviceConnector.ts'

const to: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'

let service: TestService
let store: Map<string, string>
let account: Hex
beforeEach(() => start({}))
afterEach(() => vi.unstubAllGlobals())

function start(options: TestServiceOptions): void {
  service = installTestService({ chainId: sepolia.id, ...options })
  store = new Map()
  account = getAddress(service.wallet.address)
}

type Options = Omit<ServiceConnectorParameters, 'client' | 'config'>

/** A page: each call is another page load with the same storage. */
function loadPage(options: Options = {}, { storage = true }: { storage?: boolean } = {}): Config {
  return createConfig({
    chains: [sepolia, mainnet],
    transports: { [sepolia.id]: http(service.config.rpcUrl), [mainnet.id]: http('https://rpc.test') },
    connectors: [serviceConnector({ config: service.config, ...options })],
    multiInjectedProviderDiscovery: false,
    storage: storage
      ? createStorage({
          storage: {
            getItem: (key) => store.get(key) ?? null,
            setItem: (key, value) => void store.set(key, value),
            removeItem: (key) => void store.delete(key),
          },
        })
      : null,
  }) as unknown as Config
}

function connectorOf(config: Config) {
  const [connector] = config.connectors
  if (connector === undefined) throw new Error('no connector')
  return connector
}

describe('connect', () => {
  test('connects a signed-in user immediately', async () => {
    const config = loadPage()
    const connected = await connect(config, { connector: connectorOf(config) })
    expect(connected).toEqual({ accounts: [account], chainId: sepolia.id })
    expect(getConnection(config)).toMatchObject({ status: 'connected', address: account, chainId: sepolia.id })
    expect(connectorOf(config)).toMatchObject({ id: 'countersign', name: 'Countersign', type: 'countersign' })
  })

  test('accepts a name, an icon and a client, and returns capabilities', async () => {
    const client = new ServiceClient(service.config)
    const config = createConfig({
      chains: [sepolia],
      transports: { [sepolia.id]: http(service.config.rpcUrl) },
      connectors: [serviceConnector({ client, name: 'Acme', icon: 'data:image/svg+xml,' })],
      storage: null,
    })
    const [connector] = config.connectors
    expect(connector).toMatchObject({ name: 'Acme', icon: 'data:image/svg+xml,' })
    const connected = await connect(config, { connector, withCapabilities: true })
    expect(connected.accounts).toEqual([{ address: account, capabilities: {} }])
  })

  test('creates a missing wallet', async () => {
    start({ provisioned: false })
    const config = loadPage()
    expect(await connect(config, { connector: connectorOf(config) })).toMatchObject({ accounts: [account] })
  })

  test('keeps the wallet’s chain if another is requested', async () => {
    const config = loadPage()
    const connected = await connect(config, { connector: connectorOf(config), chainId: mainnet.id })
    expect(connected.chainId).toBe(sepolia.id)
  })

  test('rejects a chain that wagmi’s config lacks', async () => {
    start({ chainId: 31337 })
    const config = loadPage()
    await expect(connect(config, { connector: connectorOf(config) })).rejects.toThrow(ChainNotConfiguredError)
    expect(service.requests).toEqual([])
  })

  test('does not redirect to the sign-in if the service is down', async () => {
    const onLogin = vi.fn()
    const config = loadPage({ onLogin })
    service.failNext('GET /wallet/me', 'network')
    await expect(connect(config, { connector: connectorOf(config) })).rejects.toMatchObject({ code: 4900 })
    expect(onLogin).not.toHaveBeenCalled()
    expect(getConnection(config).status).toBe('disconnected')
  })
})

describe('sign-in by redirect', () => {
  test('redirects without a session, and connects after the return', async () => {
    start({ signedIn: false })
    const assign = vi.fn()
    vi.stubGlobal('location', { href: 'https://app.test/pay?x=1', assign })
    const before = loadPage()
    await expect(connect(before, { connector: connectorOf(before) })).rejects.toMatchObject({ code: 4100 })
    const url = 'https://service.test/auth?return_to=https%3A%2F%2Fapp.test%2Fpay%3Fx%3D1'
    expect(assign).toHaveBeenCalledExactlyOnceWith(url)
    expect(getConnection(before).status).toBe('disconnected')

    service.signIn()
    const after = loadPage()
    expect(await reconnect(after)).toMatchObject([{ accounts: [account], chainId: sepolia.id }])
    expect(getConnection(after)).toMatchObject({ status: 'connected', address: account })
    expect(assign).toHaveBeenCalledTimes(1)
  })

  test('stays disconnected and does not redirect again after a return without a session', async () => {
    start({ signedIn: false })
    const onLogin = vi.fn()
    const before = loadPage({ onLogin })
    await expect(connect(before, { connector: connectorOf(before) })).rejects.toMatchObject({ code: 4100 })
    const after = loadPage({ onLogin })
    expect(await reconnect(after)).toEqual([])
    expect(onLogin).toHaveBeenCalledTimes(1)
  })

  test('reconnects before other wallets', async () => {
    start({ signedIn: false })
    const other = mock({ accounts: [to], features: { defaultConnected: true, reconnect: true } })
    const load = () =>
      createConfig({
        chains: [sepolia],
        transports: { [sepolia.id]: http(service.config.rpcUrl) },
        connectors: [other, serviceConnector({ config: service.config, onLogin: () => {} })],
        storage: loadPage().storage,
      })
    const before = load()
    await expect(connect(before, { connector: before.connectors[1] })).rejects.toMatchObject({ code: 4100 })
    service.signIn()
    const after = load()
    await reconnect(after)
    expect(getConnection(after).connector?.id).toBe('countersign')
  })

  test('connects if onLogin signs in without leaving the page', async () => {
    start({ signedIn: false })
    const config = loadPage({ onLogin: () => service.signIn() })
    expect(await connect(config, { connector: connectorOf(config) })).toMatchObject({ accounts: [account] })
  })
})

describe('reconnect', () => {
  test('works after a reload while the session is open', async () => {
    const first = loadPage()
    await connect(first, { connector: connectorOf(first) })
    const second = loadPage()
    expect(await reconnect(second)).toMatchObject([{ accounts: [account] }])
    service.signOut()
    const third = loadPage()
    expect(await reconnect(third)).toEqual([])
    expect(getConnection(third).status).toBe('disconnected')
  })

  test('sends no request if the user never connected', async () => {
    const config = loadPage()
    expect(await reconnect(config)).toEqual([])
    expect(service.requests).toEqual([])
  })

  test('is not authorized, without an error, if the service is down', async () => {
    const first = loadPage()
    await connect(first, { connector: connectorOf(first) })
    service.failNext('GET /auth/me', 'network')
    expect(await reconnect(loadPage())).toEqual([])
  })

  test('does not redirect if the session ends during the reconnect', async () => {
    const first = loadPage()
    await connect(first, { connector: connectorOf(first) })
    const onLogin = vi.fn()
    service.failNext('GET /wallet/me', { code: 'session_expired' })
    expect(await reconnect(loadPage({ onLogin }))).toEqual([])
    expect(onLogin).not.toHaveBeenCalled()
  })

  test('depends only on the session without storage', async () => {
    const config = loadPage({}, { storage: false })
    expect(await reconnect(config)).toMatchObject([{ accounts: [account] }])
  })
})

describe('disconnect', () => {
  test('keeps the session; a reload does not reconnect, a click does without a redirect', async () => {
    const onLogin = vi.fn()
    const config = loadPage({ onLogin })
    await connect(config, { connector: connectorOf(config) })
    await disconnect(config)
    expect(getConnection(config).status).toBe('disconnected')
    expect(await connectorOf(config).getAccounts()).toEqual([])
    expect(service.requests).not.toContain('POST /auth/logout')
    expect(await reconnect(loadPage())).toEqual([])
    expect(await connect(config, { connector: connectorOf(config) })).toMatchObject({ accounts: [account] })
    expect(onLogin).not.toHaveBeenCalled()
  })

  test('ends the session with signOutOnDisconnect', async () => {
    const config = loadPage({ signOutOnDisconnect: true })
    await connect(config, { connector: connectorOf(config) })
    await disconnect(config)
    expect(service.requests).toContain('POST /auth/logout')
    expect(await new ServiceClient(service.config).api.me()).toBeNull()
  })

  test('reports a failed sign-out and disconnects anyway', async () => {
    const config = loadPage({ signOutOnDisconnect: true })
    await connect(config, { connector: connectorOf(config) })
    service.failNext('POST /auth/logout', { code: 'database_unavailable' })
    await expect(disconnect(config)).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(getConnection(config).status).toBe('disconnected')
    expect(await reconnect(loadPage())).toEqual([])
  })

  test('disconnects when the session ends', async () => {
    const config = loadPage()
    await connect(config, { connector: connectorOf(config) })
    service.signOut()
    await expect(sendTransaction(config, { to, value: 1n })).rejects.toThrow()
    await expect.poll(() => getConnection(config).status).toBe('disconnected')
  })
})

describe('chains', () => {
  test('switches only to itself', async () => {
    const config = loadPage()
    await connect(config, { connector: connectorOf(config) })
    expect(await switchChain(config, { chainId: sepolia.id })).toMatchObject({ id: sepolia.id })
    await expect(switchChain(config, { chainId: mainnet.id })).rejects.toThrow(SwitchChainError)
    await expect(switchChain(config, { chainId: 5 })).rejects.toThrow(SwitchChainError)
    expect(getConnection(config).chainId).toBe(sepolia.id)
  })
})

describe('sending', () => {
  test('rejects another chain before signing', async () => {
    const config = loadPage()
    await connect(config, { connector: connectorOf(config) })
    await expect(sendTransaction(config, { to, chainId: mainnet.id })).rejects.toThrow(/chain/i)
    expect(service.proofs).toEqual([])
  })

  test('lets the user refuse', async () => {
    const config = loadPage({ onConfirm: async () => false })
    await connect(config, { connector: connectorOf(config) })
    await expect(sendTransaction(config, { to })).rejects.toThrow(/user rejected/i)
    expect(service.proofs).toEqual([])
  })
})

describe('a vault as the account', () => {
  /** A page with connectors for the user's own wallet and for a vault that may send 1,000 wei to one address. */
  async function loadVaultPage() {
    const client = new ServiceClient(service.config)
    const vault = await createVault(client, {
      version: 1,
      log: null,
      approvers: [],
      rules: [{ ...rule, chainIds: [sepolia.id], to: [to], maxValueWei: '1000' }],
    })
    await client.signAndSend({ to: vault.address, value: '1' })
    const config = createConfig({
      chains: [sepolia],
      transports: { [sepolia.id]: http(service.config.rpcUrl) },
      connectors: [
        serviceConnector({ client }),
        serviceConnector({ client: toVaultClient(client, vault), id: 'countersign-vault', name: 'Savings' }),
      ],
      multiInjectedProviderDiscovery: false,
      storage: null,
    }) as unknown as Config
    const connector = config.connectors.find(({ id }) => id === 'countersign-vault')
    if (connector === undefined) throw new Error('no connector')
    return { config, connector, vault }
  }

  test('sends what its rules allow, and rejects the rest before signing', async () => {
    const { config, connector, vault } = await loadVaultPage()
    const { accounts } = await connect(config, { connector })
    expect(accounts).toEqual([getAddress(vault.address)])
    const hash = await sendTransaction(config, { to, value: 1000n })
    expect(service.transactions.at(-1)).toMatchObject({ hash, from: vault.address })
    const signed = service.proofs.length
    const error = await sendTransaction(config, { to, value: 1001n }).catch((thrown: BaseError) => thrown)
    expect((error as BaseError).walk(isVaultError)).toMatchObject({ code: 'policy_refused' })
    const refusal = await signMessage(config, { message: 'hello' }).catch((thrown: BaseError) => thrown)
    expect((refusal as BaseError).walk(isVaultError)).toMatchObject({ code: 'policy_refused' })
    expect(service.proofs).toHaveLength(signed)
  })

  test('each connector remembers its own connection', async () => {
    const { config, connector } = await loadVaultPage()
    expect(config.connectors.map(({ id }) => id)).toEqual(['countersign', 'countersign-vault'])
    await connect(config, { connector })
    await connect(config, { connector: connectorOf(config) })
    expect(getConnection(config).address).toBe(account)
  })
})
