import { ServiceError, type SessionUser, type WalletInfo } from '@countersign/protocol'
import { createStore, type Store } from './createStore.ts'
import { createError, toServiceError } from './errors.ts'
import type { LoginOptions, ServiceClient } from './ServiceClient.ts'

/** The parts of the browser's page that a sign-in needs. */
type Page = {
  getUrl(): string
  assign(url: string): void
  /** Storage of this tab that survives the sign-in. Returns null if the browser has none or blocks it. */
  getItem(key: string): string | null
  setItem(key: string, value: string | null): void
  now(): number
  /** Whether the user came to this page with the browser's back or forward button. */
  isBack(): boolean
}

/** Reads browser globals only when called, so that a server can import it. */
export const browserPage: Page = {
  getUrl: () => window.location.href,
  assign: (url) => window.location.assign(url),
  getItem(key) {
    try {
      return window.sessionStorage.getItem(key)
    } catch {
      return null
    }
  },
  setItem(key, value) {
    try {
      if (value === null) window.sessionStorage.removeItem(key)
      else window.sessionStorage.setItem(key, value)
    } catch {
      // Storage is full or blocked. Only the diagnosis `cookie_blocked` needs it.
    }
  },
  now: () => Date.now(),
  isBack() {
    // Test environments may not have navigation entries.
    const entry = performance.getEntriesByType?.('navigation')[0] as PerformanceNavigationTiming | undefined
    return entry?.type === 'back_forward'
  },
}

type ServiceState = {
  user: SessionUser | null
  wallet: WalletInfo | null
  /** True once the first cycle has finished, even if it failed. */
  ready: boolean
  /** The error of the last cycle, or null. Being signed out is not an error. */
  error: ServiceError | null
}

/** The user and the wallet of a page: specification §3 and §4. */
export type ServiceStore = Store<ServiceState> & {
  /** Runs the first cycle once. The cycle ends early when every caller has called the returned function. */
  start(): () => void
  /** Runs the cycle again. Always resolves; sets `error` on failure. */
  refresh(): Promise<void>
  /** Leaves the page for the sign-in. */
  login(options?: LoginOptions): void
  /** Ends the session. Clears the state even if the request fails, and then rejects. */
  logout(): Promise<void>
}

const SIGNED_OUT = { user: null, wallet: null, error: null }
/** How long a sign-in of this page may take. */
const LOGIN_WINDOW_MS = 10 * 60_000

export function createServiceStore(client: ServiceClient, page: Page = browserPage): ServiceStore {
  const store = createStore<ServiceState>({ ...SIGNED_OUT, ready: false })
  const loginKey = `countersign:login:${client.config.apiBaseUrl}`
  /** The cycle whose answers count. A logout or a later cycle replaces it. */
  let current: { done: Promise<void> } | undefined
  let startedBy = 0
  let isLeaving = false

  function runCycle(isWanted: () => boolean): Promise<void> {
    const cycle = { done: Promise.resolve() }
    current = cycle
    const isCurrent = () => {
      // Drop it immediately, so that a start at this moment begins a new cycle.
      if (current === cycle && !isWanted()) current = undefined
      return current === cycle
    }
    cycle.done = cycleOnce(isCurrent).then(() => {
      // A caller of a replaced cycle waits for the newer one, because it wants the state.
      if (current !== cycle) return current?.done
    })
    return cycle.done
  }

  async function cycleOnce(isCurrent: () => boolean): Promise<void> {
    try {
      const user = await client.api.me()
      if (!isCurrent()) return
      if (user === null) return complete({ ...SIGNED_OUT, error: findBlockedCookie() })
      page.setItem(loginKey, null)
      // Never show the new user with the previous user's wallet.
      if (store.getSnapshot().user?.id !== user.id) store.set({ user, wallet: null })
      const found = await client.api.getWallet()
      if (!isCurrent()) return
      const wallet = found ?? (await client.api.provisionWallet())
      if (isCurrent()) complete({ user, wallet, error: null })
    } catch (error) {
      if (!isCurrent()) return
      // The session ended between two calls.
      if (error instanceof ServiceError && error.status === 401) complete(SIGNED_OUT)
      else complete({ error: toServiceError(error) })
    }
  }

  function complete(change: Partial<ServiceState>) {
    store.set({ ...change, ready: true })
  }

  /** The error if this tab has returned from a sign-in without a session. */
  function findBlockedCookie(): ServiceError | null {
    if (isLeaving) return null
    // Without a sign-in, `getItem` returns null and the age is longer than the window.
    const age = page.now() - Number(page.getItem(loginKey))
    const hasCancelled = page.isBack() || /[?&]sign_in=/.test(page.getUrl())
    if (age >= 0 && age <= LOGIN_WINDOW_MS && !hasCancelled) {
      const details = `host the app and ${client.config.apiBaseUrl} on one site`
      return createError('cookie_blocked', 'no session cookie', { details })
    }
    page.setItem(loginKey, null)
    return null
  }

  return {
    ...store,

    start() {
      startedBy += 1
      if (current === undefined && !store.getSnapshot().ready) void runCycle(() => startedBy > 0)
      let hasStopped = false
      return () => {
        if (!hasStopped) startedBy -= 1
        hasStopped = true
      }
    },

    refresh: () => runCycle(() => true),

    login(options) {
      const { config } = client
      const leave = (to: string) => {
        isLeaving = true
        // A direct sign-in needs no cookie.
        if (to.startsWith(config.apiBaseUrl)) page.setItem(loginKey, String(page.now()))
        page.assign(to)
      }
      // As a click handler it receives the event, which has no `provider`.
      const url = client.loginUrl({ ...options, returnTo: page.getUrl() })
      if (!config.session) return leave(url)
      config.session.startLogin(config, url).then(leave, (error) => complete({ error: toServiceError(error) }))
    },

    async logout() {
      try {
        await client.api.logout()
      } finally {
        current = undefined
        page.setItem(loginKey, null)
        complete(SIGNED_OUT)
      }
    },
  }
}
