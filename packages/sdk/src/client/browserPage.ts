/** What of the browser's page a sign-in needs. */
export type Page = {
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
