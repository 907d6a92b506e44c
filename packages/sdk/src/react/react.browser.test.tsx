import { type ReactNode, StrictMode } from 'react'
import { hydrateRoot } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { type RenderHookResult, render, renderHook } from 'vitest-browser-react'
import { configure } from 'vitest-browser-react/pure'
import {
  chainId,
  config,
  createGate,
  createProof,
  type FakeNetwork,
  installFakeNetwork,
  json,
  problem,
  user,
  wallet,
} from '../../test/client/network.ts'
import { POLL_INTERVAL_MS } from '../client/proofStore.ts'
import { browserPage } from '../client/serviceStore.ts'
import { type ServiceClient, ServiceProvider, useAttestation, useService, useSign, useWallet } from '../index.ts'

// Every test runs in StrictMode: effects are mounted, unmounted and mounted again.
configure({ reactStrictMode: true })

let network: FakeNetwork

beforeEach(() => {
  network = installFakeNetwork()
})

const to = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const Provided = ({ children }: { children: ReactNode }) => (
  <ServiceProvider config={config}>{children}</ServiceProvider>
)
const signedOut = () => {
  network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
}

function Wallet() {
  const { user, wallet, ready } = useWallet()
  return <p>{`${user?.email ?? 'signed out'} ${wallet?.address ?? 'no wallet'} ${ready ? 'ready' : 'waiting'}`}</p>
}

function CollectClient({ clients }: { clients: Set<ServiceClient> }) {
  clients.add(useService().client)
  return null
}

function CollectSign({ into }: { into: { current?: ReturnType<typeof useSign> } }) {
  into.current = useSign()
  return null
}

const useBoth = () => ({ sign: useSign(), wallet: useWallet() })

const ready = `${user.email} ${wallet.address} ready`

describe('§4 ServiceProvider', () => {
  test('StrictMode: one fetch cycle, not two', async () => {
    const screen = await render(
      <Provided>
        <Wallet />
      </Provided>,
    )
    await expect.element(screen.getByText(ready)).toBeInTheDocument()
    expect(network.paths()).toEqual(['GET /auth/me', 'GET /wallet/me'])
  })

  test('never refreshes automatically on focus, visibility or storage events', async () => {
    const screen = await render(
      <Provided>
        <Wallet />
      </Provided>,
    )
    await expect.element(screen.getByText(ready)).toBeInTheDocument()
    for (const name of ['focus', 'storage', 'online', 'pageshow']) window.dispatchEvent(new Event(name))
    document.dispatchEvent(new Event('visibilitychange'))
    await screen.rerender(
      <Provided>
        <Wallet />
      </Provided>,
    )
    expect(network.calls).toHaveLength(2)
  })

  test('hydrates the server’s output without a warning', async () => {
    const app = (
      <StrictMode>
        <Provided>
          <Wallet />
        </Provided>
      </StrictMode>
    )
    const container = document.createElement('div')
    document.body.append(container)
    container.innerHTML = renderToString(app)
    expect(container.textContent).toBe('signed out no wallet waiting')
    expect(network.calls).toEqual([])
    const complaints: unknown[] = []
    const root = hydrateRoot(container, app, { onRecoverableError: (error) => complaints.push(error) })
    await expect.poll(() => container.textContent).toBe(ready)
    expect(complaints).toEqual([])
    expect(network.paths()).toEqual(['GET /auth/me', 'GET /wallet/me'])
    root.unmount()
    container.remove()
  })

  test('unmounted during a request, it sends no more requests and logs no warning', async () => {
    const complain = vi.spyOn(console, 'error')
    const gate = createGate<Response>()
    network.routes['GET /auth/me'] = () => gate.opened
    const screen = await render(
      <Provided>
        <Wallet />
      </Provided>,
    )
    await screen.unmount()
    gate.open(json(user))
    await new Promise((resolve) => setTimeout(resolve))
    expect(network.paths()).toEqual(['GET /auth/me'])
    expect(complain).not.toHaveBeenCalled()
    complain.mockRestore()
  })

  test('a new config object with the same values, or another rpcUrl, keeps the client', async () => {
    const clients = new Set<ServiceClient>()
    const app = (rpcUrl: string) => (
      <ServiceProvider config={{ ...config, rpcUrl }}>
        <CollectClient clients={clients} />
        <Wallet />
      </ServiceProvider>
    )
    const screen = await render(app(config.rpcUrl))
    await expect.element(screen.getByText(ready)).toBeInTheDocument()
    await screen.rerender(app('https://other-rpc.test'))
    expect(clients.size).toBe(1)
    expect(network.calls).toHaveLength(2)
  })

  test.each([
    ['apiBaseUrl', { ...config, apiBaseUrl: 'https://api.test/v2' }, '/v2'],
    ['chainId', { ...config, chainId: chainId + 1 }, ''],
  ])('another %s creates a new client and drops old answers', async (_, changed, prefix) => {
    const gate = createGate<Response>()
    network.routes['GET /auth/me'] = () => gate.opened
    const screen = await render(
      <ServiceProvider config={config}>
        <Wallet />
      </ServiceProvider>,
    )
    network.routes[`GET ${prefix}/auth/me`] = () => json({ ...user, email: 'new@example.com' })
    network.routes[`GET ${prefix}/wallet/me`] = () => json(wallet)
    await screen.rerender(
      <ServiceProvider config={changed}>
        <Wallet />
      </ServiceProvider>,
    )
    gate.open(json({ ...user, email: 'old@example.com' }))
    await expect.element(screen.getByText(`new@example.com ${wallet.address} ready`)).toBeInTheDocument()
    expect(network.paths()).toEqual(['GET /auth/me', `GET ${prefix}/auth/me`, `GET ${prefix}/wallet/me`])
  })

  test('two providers on a page are independent', async () => {
    network.routes['GET /other/auth/me'] = () => problem(401, 'not_authenticated')
    const screen = await render(
      <>
        <Provided>
          <Wallet />
        </Provided>
        <ServiceProvider config={{ ...config, apiBaseUrl: 'https://api.test/other/' }}>
          <Wallet />
        </ServiceProvider>
      </>,
    )
    await expect.element(screen.getByText(ready)).toBeInTheDocument()
    await expect.element(screen.getByText('signed out no wallet ready')).toBeInTheDocument()
  })
})

describe('§4 useService and useWallet', () => {
  test('return stable functions', async () => {
    const hook = await renderHook(() => ({ service: useService(), wallet: useWallet() }), { wrapper: Provided })
    const first = hook.result.current
    expect(Object.keys(first.wallet).sort()).toEqual(['login', 'logout', 'ready', 'refresh', 'user', 'wallet'])
    expect(Object.keys(first.service).sort()).toEqual([
      'client',
      'error',
      'login',
      'logout',
      'ready',
      'refresh',
      'user',
      'wallet',
    ])
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    const { login, logout, refresh } = hook.result.current.wallet
    expect([login, logout, refresh]).toEqual([first.wallet.login, first.wallet.logout, first.wallet.refresh])
  })

  test('refresh reports a failure; login leaves the page; logout clears the state even if it fails', async () => {
    signedOut()
    const hook = await renderHook(useService, { wrapper: Provided })
    await expect.poll(() => hook.result.current.ready).toBe(true)
    network.routes['GET /auth/me'] = () => problem(503, 'database_unavailable')
    await hook.act(() => hook.result.current.refresh())
    expect(hook.result.current).toMatchObject({ user: null, error: { code: 'database_unavailable' } })
    network.routes['GET /auth/me'] = () => json(user)
    await hook.act(() => hook.result.current.refresh())
    expect(hook.result.current).toMatchObject({ user, wallet, error: null })
    const assign = vi.spyOn(browserPage, 'assign').mockReturnValue()
    hook.result.current.login({ provider: 'b' })
    expect(assign).toHaveBeenCalledWith(expect.stringContaining(`${config.apiBaseUrl}/auth/b?return_to=`))
    assign.mockRestore()
    network.routes['POST /auth/logout'] = () => problem(502, 'internal')
    let failure: unknown
    await hook.act(async () => {
      failure = await hook.result.current.logout().catch((error: unknown) => error)
    })
    expect(failure).toMatchObject({ status: 502 })
    expect(hook.result.current).toMatchObject({ user: null, wallet: null, ready: true })
  })
})

describe('§4 useSign', () => {
  test('signs with the known wallet after checking that it is still the user’s', async () => {
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    const { signAndSend } = hook.result.current.sign
    let sending: ReturnType<typeof signAndSend> | undefined
    await hook.act(async () => {
      sending = signAndSend({ to, value: '0.1' })
    })
    const result = await sending
    const done = { signAndSend, pending: false, error: null, lastResult: result }
    await expect.poll(() => hook.result.current.sign).toEqual(done)
    expect(result?.attestationSlug).toBe('slug-1')
    expect(network.paths()).toEqual(['GET /auth/me', 'GET /wallet/me', 'GET /wallet/me', 'POST /sign/digest'])
  })

  test('is pending until the call ends', async () => {
    const gate = createGate<Response>()
    network.routes['POST /sign/digest'] = () => gate.opened
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    let sending: Promise<unknown> | undefined
    await hook.act(() => {
      sending = hook.result.current.sign.signAndSend({ to }).catch((error: unknown) => error)
    })
    expect(hook.result.current.sign.pending).toBe(true)
    gate.open(problem(503, 'enclave_unavailable'))
    const error = await sending
    await expect.poll(() => hook.result.current.sign).toMatchObject({ pending: false, error, lastResult: null })
  })

  test('fails with wallet_changed before signing if another tab has signed in another user', async () => {
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    const other = { ...wallet, address: to } as const
    network.routes['GET /auth/me'] = () => json({ ...user, id: 'b' })
    network.routes['GET /wallet/me'] = () => json(other)
    let failure: unknown
    await hook.act(async () => {
      failure = await hook.result.current.sign.signAndSend({ to }).catch((error: unknown) => error)
    })
    expect(failure).toMatchObject({ code: 'wallet_changed' })
    expect(hook.result.current.sign.error).toBe(failure)
    expect(network.paths()).not.toContain('POST /sign/digest')
    await hook.act(() => hook.result.current.wallet.refresh())
    expect(hook.result.current.wallet.wallet).toEqual(other)
  })

  test('§7 rejects with Error("wallet_not_ready") without a request while wallet is null', async () => {
    signedOut()
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    const before = network.calls.length
    let failure: unknown
    await hook.act(async () => {
      failure = await hook.result.current.sign.signAndSend({ to }).catch((error: unknown) => error)
    })
    expect(failure).toBeInstanceOf(Error)
    expect(failure).toMatchObject({ message: 'wallet_not_ready', code: 'wallet_not_ready' })
    expect(hook.result.current.sign).toMatchObject({ pending: false, error: failure })
    expect(network.calls).toHaveLength(before)
  })

  test('uses a wallet that arrived after the last render', async () => {
    signedOut()
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    network.routes['GET /auth/me'] = () => json(user)
    const { sign, wallet: before } = hook.result.current
    await hook.act(async () => {
      await before.refresh()
      await sign.signAndSend({ to })
    })
    expect(network.mempool).toHaveLength(1)
  })

  test('two quick clicks use two nonces, with the browser’s Web Locks', async () => {
    expect(navigator.locks).toBeDefined()
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    const { signAndSend } = hook.result.current.sign
    await hook.act(async () => {
      await Promise.all([signAndSend({ to }), signAndSend({ to })])
    })
    expect(new Set(network.mempool).size).toBe(2)
  })

  test('signs with the new client after a change of config', async () => {
    const sign: { current?: ReturnType<typeof useSign> } = {}
    const app = (apiBaseUrl: string) => (
      <ServiceProvider config={{ ...config, apiBaseUrl }}>
        <CollectSign into={sign} />
        <Wallet />
      </ServiceProvider>
    )
    const screen = await render(app(config.apiBaseUrl))
    await expect.element(screen.getByText(ready)).toBeInTheDocument()
    for (const [route, handler] of Object.entries(network.routes)) network.routes[route.replace(' ', ' /v2')] = handler
    await screen.rerender(app('https://api.test/v2'))
    await expect.element(screen.getByText(ready)).toBeInTheDocument()
    await sign.current?.signAndSend({ to })
    expect(network.paths().slice(2)).toEqual([
      'GET /v2/auth/me',
      'GET /v2/wallet/me',
      'GET /v2/wallet/me',
      'POST /v2/sign/digest',
    ])
  })

  test('finishes signing after an unmount, without a warning', async () => {
    const complain = vi.spyOn(console, 'error')
    const hook = await renderHook(useBoth, { wrapper: Provided })
    await expect.poll(() => hook.result.current.wallet.ready).toBe(true)
    const sending = hook.result.current.sign.signAndSend({ to })
    await hook.unmount()
    expect(await sending).toMatchObject({ attestationSlug: 'slug-1' })
    expect(complain).not.toHaveBeenCalled()
    complain.mockRestore()
  })
})

describe('§4 useAttestation', () => {
  const proofCalls = () => network.paths().filter((path) => path.startsWith('GET /proof/'))
  const advance = (hook: Pick<RenderHookResult<unknown, unknown>, 'act'>, ms: number) =>
    hook.act(async () => {
      await vi.advanceTimersByTimeAsync(ms)
    })

  beforeEach(() => {
    signedOut()
    vi.useFakeTimers()
    network.routes['GET /proof/a'] = () => json(createProof('a'))
    network.routes['GET /proof/b'] = () => json(createProof('b'))
  })

  const watch = (slug: string | null | undefined, wrapper = Provided) =>
    renderHook((props?: { slug: string | null | undefined }) => useAttestation(props?.slug), {
      initialProps: { slug },
      wrapper,
    })

  test('StrictMode: sends one request immediately, and the next 4 seconds later', async () => {
    const hook = await watch('a')
    await advance(hook, 0)
    expect(proofCalls()).toEqual(['GET /proof/a'])
    expect(hook.result.current).toEqual({ proof: createProof('a'), loading: false, error: null })
    await advance(hook, POLL_INTERVAL_MS - 1)
    expect(proofCalls()).toHaveLength(1)
    await advance(hook, 1)
    expect(proofCalls()).toHaveLength(2)
  })

  test.each([null, undefined, ''])('does nothing with the slug %j', async (slug) => {
    const hook = await watch(slug)
    await advance(hook, 60_000)
    expect(hook.result.current).toEqual({ proof: null, loading: false, error: null })
    expect(proofCalls()).toEqual([])
  })

  test('stops and keeps the last proof if the slug becomes falsy', async () => {
    const hook = await watch('a')
    await advance(hook, 0)
    network.routes['GET /proof/a'] = () => new Promise(() => {})
    await advance(hook, POLL_INTERVAL_MS)
    expect(hook.result.current.loading).toBe(true)
    await hook.rerender({ slug: null })
    await advance(hook, 60_000)
    expect(hook.result.current).toEqual({ proof: createProof('a'), loading: false, error: null })
    expect(proofCalls()).toHaveLength(2)
  })

  test('§7 sets error on a failed request and clears it on the next success', async () => {
    network.routes['GET /proof/a'] = () => problem(503, 'database_unavailable')
    const hook = await watch('a')
    await advance(hook, 0)
    expect(hook.result.current).toMatchObject({ proof: null, loading: false, error: { code: 'database_unavailable' } })
    network.routes['GET /proof/a'] = () => json(createProof('a'))
    await advance(hook, POLL_INTERVAL_MS)
    expect(hook.result.current).toEqual({ proof: createProof('a'), loading: false, error: null })
    network.routes['GET /proof/a'] = () => problem(503, 'database_unavailable')
    await advance(hook, POLL_INTERVAL_MS)
    expect(hook.result.current).toMatchObject({ proof: createProof('a'), error: { code: 'database_unavailable' } })
  })

  test('never renders the proof of another slug', async () => {
    const seen: [string, string | undefined][] = []
    const hook = await renderHook(
      (props?: { slug: string }) => {
        const slug = props?.slug ?? ''
        seen.push([slug, useAttestation(slug).proof?.slug])
      },
      { initialProps: { slug: 'a' }, wrapper: Provided },
    )
    await advance(hook, 0)
    await hook.rerender({ slug: 'b' })
    await advance(hook, 0)
    expect(seen).toContainEqual(['b', 'b'])
    expect(seen).not.toContainEqual(['b', 'a'])
  })
})
