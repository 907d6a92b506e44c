import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  apiBaseUrl,
  config,
  createFakePage,
  createGate,
  type FakeNetwork,
  html,
  installFakeNetwork,
  json,
  problem,
  user,
  wallet,
} from '../../test/client/network.ts'
import { withCode } from '../../test/client/withCode.ts'
import { ServiceClient } from './ServiceClient.ts'
import { createServiceStore } from './serviceStore.ts'

let network: FakeNetwork

beforeEach(() => {
  network = installFakeNetwork()
})

const create = (page = createFakePage()) => createServiceStore(new ServiceClient(config), page)
const isReady = (store: ReturnType<typeof create>) => expect.poll(() => store.getSnapshot().ready).toBe(true)
const signedOut = { user: null, wallet: null, ready: true, error: null }
const signedIn = { user, wallet, ready: true, error: null }

describe('§4 ServiceProvider, the cycle on mount', () => {
  test('creating a store sends no request', () => {
    expect(create().getSnapshot()).toEqual({ user: null, wallet: null, ready: false, error: null })
    expect(network.calls).toEqual([])
  })

  test('§7 creates a wallet if the lookup returns 404', async () => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    const store = create()
    store.start()
    await isReady(store)
    expect(store.getSnapshot()).toEqual(signedIn)
    expect(network.paths()).toEqual(['GET /auth/me', 'GET /wallet/me', 'POST /wallet/provision'])
  })

  test('§3 shows the user with a null wallet until provisioning resolves', async () => {
    const gate = createGate()
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    network.routes['POST /wallet/provision'] = async () => {
      await gate.opened
      return json(wallet)
    }
    const store = create()
    store.start()
    await expect.poll(() => network.paths()).toHaveLength(3)
    expect(store.getSnapshot()).toEqual({ user, wallet: null, ready: false, error: null })
    gate.open()
    await isReady(store)
    expect(store.getSnapshot()).toEqual(signedIn)
  })

  test('§7 a 401 sets user to null and ready to true, and sends no more requests', async () => {
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    const store = create()
    store.start()
    await isReady(store)
    expect(store.getSnapshot()).toEqual(signedOut)
    expect(network.paths()).toEqual(['GET /auth/me'])
  })

  test.each([
    ['the user lookup fails', 'GET /auth/me', () => problem(503, 'database_unavailable'), 'database_unavailable', null],
    ['a proxy answers for it', 'GET /auth/me', () => html(), 'response_invalid', null],
    ['the network is gone', 'GET /auth/me', () => Promise.reject(new TypeError()), 'network_unreachable', null],
    ['the wallet lookup fails', 'GET /wallet/me', () => problem(429, 'rate_limited'), 'rate_limited', user],
    [
      'provisioning fails',
      'POST /wallet/provision',
      () => problem(503, 'entropy_unavailable'),
      'entropy_unavailable',
      user,
    ],
  ])('§3 ready becomes true after a failure: %s', async (_, route, answer, code, expected) => {
    network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
    network.routes[route] = answer
    const store = create()
    store.start()
    await isReady(store)
    expect(store.getSnapshot()).toEqual({ user: expected, wallet: null, ready: true, error: withCode(code) })
  })

  test.each(['GET /wallet/me', 'POST /wallet/provision'])(
    'is signed out if the session ends before %s',
    async (route) => {
      network.routes['GET /wallet/me'] = () => problem(404, 'wallet_not_found')
      network.routes[route] = () => problem(401, 'session_expired')
      const store = create()
      store.start()
      await isReady(store)
      expect(store.getSnapshot()).toEqual(signedOut)
    },
  )

  test('runs one cycle if started, stopped and started again immediately, as in StrictMode', async () => {
    const store = create()
    store.start()()
    store.start()
    await isReady(store)
    expect(network.paths()).toEqual(['GET /auth/me', 'GET /wallet/me'])
    store.start()
    await Promise.resolve()
    expect(network.paths()).toHaveLength(2)
  })

  test('stopped during a request, it sends no more; a later start begins again', async () => {
    const gate = createGate()
    network.routes['GET /auth/me'] = async () => {
      await gate.opened
      return json(user)
    }
    const store = create()
    const stop = store.start()
    stop()
    stop()
    gate.open()
    await expect.poll(() => network.calls).toHaveLength(1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(network.paths()).toEqual(['GET /auth/me'])
    expect(store.getSnapshot().ready).toBe(false)
    store.start()
    await isReady(store)
    expect(store.getSnapshot()).toEqual(signedIn)
  })
})

test('becomes ready if started again at any moment after a stop', async () => {
  const client = new ServiceClient(config)
  // Every position in the microtask queue at which the old cycle may end.
  for (let ticks = 0; ticks < 20; ticks += 1) {
    const gate = createGate<typeof user>()
    const api = { ...client.api, me: () => gate.opened, getWallet: async () => wallet }
    const store = createServiceStore({ config: client.config, api } as unknown as ServiceClient, createFakePage())
    store.start()()
    gate.open(user)
    for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve()
    store.start()
    await new Promise((resolve) => setImmediate(resolve))
    expect(store.getSnapshot(), `${ticks} microtasks later`).toEqual(signedIn)
  }
})

describe('§4 refresh', () => {
  test('runs the cycle again and notifies listeners', async () => {
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    const store = create()
    const listener = vi.fn()
    const unsubscribe = store.subscribe(listener)
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedOut)
    network.routes['GET /auth/me'] = () => json(user)
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedIn)
    const calls = listener.mock.calls.length
    expect(calls).toBeGreaterThanOrEqual(2)
    unsubscribe()
    await store.refresh()
    expect(listener).toHaveBeenCalledTimes(calls)
  })

  test('never rejects; error holds a failure until the next success', async () => {
    const store = create()
    await store.refresh()
    network.routes['GET /auth/me'] = () => html(502)
    await expect(store.refresh()).resolves.toBeUndefined()
    expect(store.getSnapshot()).toEqual({ ...signedIn, error: withCode('response_invalid') })
    network.routes['GET /auth/me'] = () => json(user)
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedIn)
  })

  test('drops the answers of a replaced cycle, whose promise waits for the newer one', async () => {
    const early = createGate<Response>()
    const late = createGate<Response>()
    network.routes['GET /auth/me'] = () => early.opened
    const store = create()
    const settled = vi.fn()
    const first = store.refresh().then(settled)
    network.routes['GET /auth/me'] = () => late.opened
    const second = store.refresh()
    early.open(problem(401, 'not_authenticated'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(settled).not.toHaveBeenCalled()
    expect(store.getSnapshot().ready).toBe(false)
    late.open(json(user))
    await Promise.all([first, second])
    expect(store.getSnapshot()).toEqual(signedIn)
  })

  test('never shows the old wallet with a new user', async () => {
    const store = create()
    await store.refresh()
    const other = { ...user, id: 'b' }
    network.routes['GET /auth/me'] = () => json(other)
    network.routes['GET /wallet/me'] = () => problem(503, 'database_unavailable')
    const seen: unknown[] = []
    store.subscribe(() => seen.push(store.getSnapshot()))
    await store.refresh()
    expect(seen).not.toContainEqual(expect.objectContaining({ user: other, wallet }))
    expect(store.getSnapshot()).toMatchObject({ user: other, wallet: null })
  })

  test('the server snapshot is always the same initial object', async () => {
    const store = create()
    const before = store.getServerSnapshot()
    await store.refresh()
    expect(store.getServerSnapshot()).toBe(before)
    expect(before.ready).toBe(false)
  })
})

describe('§4 logout', () => {
  test('calls POST /auth/logout, then clears user and wallet', async () => {
    const store = create()
    await store.refresh()
    const gate = createGate()
    network.routes['POST /auth/logout'] = async () => {
      await gate.opened
      return json({ ok: true })
    }
    const done = store.logout()
    expect(store.getSnapshot()).toEqual(signedIn)
    gate.open()
    await done
    expect(store.getSnapshot()).toEqual(signedOut)
    expect(network.paths().at(-1)).toBe('POST /auth/logout')
  })

  test('§7 clears the state and rejects if the request fails', async () => {
    const store = create()
    await store.refresh()
    network.routes['POST /auth/logout'] = () => problem(503, 'database_unavailable')
    await expect(store.logout()).rejects.toEqual(withCode('database_unavailable'))
    expect(store.getSnapshot()).toEqual(signedOut)
  })

  test('a pending cycle does not restore the user', async () => {
    const gate = createGate<Response>()
    network.routes['GET /wallet/me'] = () => gate.opened
    const store = create()
    const cycle = store.refresh()
    await expect.poll(() => network.paths()).toHaveLength(2)
    await store.logout()
    gate.open(json(wallet))
    await cycle
    expect(store.getSnapshot()).toEqual(signedOut)
  })
})

describe('login and a blocked cookie', () => {
  test('§4 redirects the page to the start URL with the address to return to', () => {
    const page = createFakePage()
    create(page).login()
    expect(page.visited).toEqual([`${apiBaseUrl}/auth?return_to=https%3A%2F%2Fapp.test%2Fpay%3Fx%3D1%23here`])
    expect(network.calls).toEqual([])
    expect([...page.items.values()]).toEqual(['1000000'])
  })

  test('takes a provider, but ignores a click event', () => {
    const page = createFakePage({ url: 'https://app.test/' })
    const { login } = create(page)
    login({ provider: 'micro soft/..' })
    login({ type: 'click' } as never)
    expect(page.visited.map((url) => url.replace(/\?.*/, ''))).toEqual([
      `${apiBaseUrl}/auth/micro%20soft%2F..`,
      `${apiBaseUrl}/auth`,
    ])
  })

  const back = async (minutes: number, page = createFakePage(), change: Partial<typeof page> = {}) => {
    create(page).login()
    Object.assign(page, change)
    page.time += minutes * 60_000
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    const store = create(page)
    await store.refresh()
    return { page, store }
  }

  test('reports cookie_blocked after a return within 10 minutes with a 401, until a success', async () => {
    const { store, page } = await back(10)
    expect(store.getSnapshot()).toEqual({ ...signedOut, error: withCode('cookie_blocked') })
    expect(store.getSnapshot().error?.details).toContain(apiBaseUrl)
    network.routes['GET /auth/me'] = () => json(user)
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedIn)
    expect(page.items.size).toBe(0)
    network.routes['GET /auth/me'] = () => problem(401, 'session_expired')
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedOut)
  })

  test.each([
    ['after more than 10 minutes', () => back(10.01)],
    ['where storage is forbidden', () => back(1, createFakePage({ canStore: false }))],
    ['where the clock went back', () => back(-1)],
    ['where the user cancelled', () => back(1, createFakePage(), { url: 'https://app.test/?x=1&sign_in=cancelled#y' })],
    [
      'after an error page of the service',
      () => back(1, createFakePage(), { url: 'https://app.test/?sign_in=failed' }),
    ],
    ['where the user went back', () => back(1, createFakePage(), { isBackPage: true })],
  ])('does not report cookie_blocked %s', async (_, come) => {
    const { store } = await come()
    expect(store.getSnapshot()).toEqual(signedOut)
  })

  test.each([
    ['if the sign-in needs no cookie', async () => 'https://issuer.test/auth'],
    ['if the sign-in failed before it left the page', async () => Promise.reject(new Error('no key'))],
  ])('does not report cookie_blocked %s', async (_, startLogin) => {
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    const page = createFakePage()
    const session = { prepare: async () => ({}), startLogin }
    createServiceStore(new ServiceClient({ ...config, session }), page).login()
    await Promise.allSettled([startLogin()])
    const store = create(page)
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedOut)
  })

  test('does not report cookie_blocked while the page is leaving', async () => {
    network.routes['GET /auth/me'] = () => problem(401, 'not_authenticated')
    const store = create()
    store.login()
    await store.refresh()
    expect(store.getSnapshot()).toEqual(signedOut)
  })
})
