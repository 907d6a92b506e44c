import { ServiceError, type SessionUser, type WalletInfo } from '@countersign/protocol'
import { createStore, type Store } from './createStore.ts'
import { createError, toServiceError } from './errors.ts'
import type { LoginOptions, ServiceClient } from './ServiceClient.ts'

/** What of the browser's page a sign-in needs. */
type Page = {
  /** The address of the page. */
  getUrl(): string
  /** Leaves for another address. */
  assign(url: string): void
  /** Kept for this tab, across the sign-in. May be missing or refuse: then there is nothing to remember. */
  getItem(key: string): string | null
  setItem(key: string, value: string | null): void
  now(): number
  /** Whether the user came to this page by the browser's button, and not by an answer of the service. */
  isBack(): boolean
}

/** The page we are on. Nothing here runs before a call, so importing and rendering on a server are safe. */
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
      // Storage is full or forbidden. The sign-in works without; only its diagnosis does not.
    }
  },
  now: () => Date.now(),
  isBack() {
    // Test environments may have none.
    const entry = performance.getEntriesByType?.('navigation')[0] as PerformanceNavigationTiming | undefined
    return entry?.type === 'back_forward'
  },
}

type ServiceState = {
  user: SessionUser | null
  wallet: WalletInfo | null
  /** True once the first cycle has settled, whatever its outcome. */
  ready: boolean
  /** Why the last cycle failed; null if it did not. Not being signed in is no failure. */
  error: ServiceError | null
}

/** The user and the wallet of a page: specification §3 and §4. */
export type ServiceStore = Store<ServiceState> & {
  /** Runs the first cycle, once, and lets it go on as long as someone who started it has not stopped. */
  start(): () => void
  /** Runs the cycle again. Always resolves; `error` says what went wrong. */
  refresh(): Promise<void>
  /** Leaves the page for the sign-in. */
  login(options?: LoginOptions): void
  /** Ends the session. The state is cleared whatever the outcome; a failed request rejects afterwards. */
  logout(): Promise<void>
}

const SIGNED_OUT = { user: null, wallet: null, error: null }
/** How long a sign-in may take and still be the one that this page began. */
const LOGIN_WINDOW_MS = 10 * 60_000

export function createServiceStore(client: ServiceClient, page: Page = browserPage): ServiceStore {
  const store = createStore<ServiceState>({ ...SIGNED_OUT, ready: false })
  const loginKey = `countersign:login:${client.config.apiBaseUrl}`
  /** The cycle whose answers count. A logout, or a later cycle, leaves the earlier ones without effect. */
  let current: { done: Promise<void> } | undefined
  let startedBy = 0
  let isLeaving = false

  function runCycle(isWanted: () => boolean): Promise<void> {
    const cycle = { done: Promise.resolve() }
    current = cycle
    const isCurrent = () => {
      // Dropped at once, so that a start at this moment begins a new cycle.
      if (current === cycle && !isWanted()) current = undefined
      return current === cycle
    }
    cycle.done = cycleOnce(isCurrent).then(() => {
      // A caller that awaits a replaced cycle wants the state, so it awaits the newer one.
      if (current !== cycle) return current?.done
    })
    return cycle.done
  }

  async function cycleOnce(isCurrent: () => boolean): Promise<void> {
    try {
      const user = await client.api.me()
      if (!isCurrent()) return
      if (user === null) return settle({ ...SIGNED_OUT, error: findBlockedCookie() })
      page.setItem(loginKey, null)
      // The wallet of another user must not be seen beside this one, not even until theirs has come.
      if (store.getSnapshot().user?.id !== user.id) store.set({ user, wallet: null })
      const found = await client.api.getWallet()
      if (!isCurrent()) return
      const wallet = found ?? (await client.api.provisionWallet())
      if (isCurrent()) settle({ user, wallet, error: null })
    } catch (error) {
      if (!isCurrent()) return
      // The session ended between two calls.
      if (error instanceof ServiceError && error.status === 401) settle(SIGNED_OUT)
      else settle({ error: toServiceError(error) })
    }
  }

  function settle(change: Partial<ServiceState>) {
    store.set({ ...change, ready: true })
  }

  /** Back from a sign-in that this tab began, and still nobody is signed in. */
  function findBlockedCookie(): ServiceError | null {
    if (isLeaving) return null
    // Where none was begun, it is as long ago as can be.
    const age = page.now() - Number(page.getItem(loginKey))
    const hasGivenUp = page.isBack() || /[?&]sign_in=/.test(page.getUrl())
    if (age >= 0 && age <= LOGIN_WINDOW_MS && !hasGivenUp) {
      const details = `host the app and ${client.config.apiBaseUrl} on one site`
      return createError('cookie_blocked', 'the browser kept no session cookie', { details })
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
      isLeaving = true
      page.setItem(loginKey, String(page.now()))
      // As the handler of a click it gets the event, which names no provider.
      page.assign(client.loginUrl({ provider: options?.provider, returnTo: page.getUrl() }))
    },

    async logout() {
      try {
        await client.api.logout()
      } finally {
        current = undefined
        page.setItem(loginKey, null)
        settle(SIGNED_OUT)
      }
    },
  }
}
