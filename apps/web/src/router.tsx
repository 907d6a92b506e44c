import { type Hex, isPrefixedHex } from '@countersign/protocol'
import { type ComponentProps, type MouseEvent, type RefObject, useEffect, useRef, useSyncExternalStore } from 'react'

export type Route =
  | { page: 'wallet' }
  | { page: 'sign' }
  | { page: 'proof'; slug: string }
  | { page: 'verify' }
  | { page: 'vaults' | 'new_vault' | 'approve' | 'passkey' }
  | { page: 'vault'; address: Hex }
  | { page: 'not_found' }

/** Pages whose path is their name. */
const PLAIN = ['verify', 'sign', 'vaults', 'approve', 'passkey'] as const

export function parseRoute(path: string): Route {
  const parts = path.split('/').filter((part) => part !== '')
  const [first, second] = parts
  if (first === undefined) return { page: 'wallet' }
  const plain = PLAIN.find((name) => name === first)
  if (plain !== undefined && parts.length === 1) return { page: plain }
  if (first === 'vaults' && second !== undefined && parts.length === 2) {
    if (second === 'new') return { page: 'new_vault' }
    if (isPrefixedHex(second, 20)) return { page: 'vault', address: second.toLowerCase() as Hex }
  }
  if (first === 'proof' && second !== undefined && parts.length === 2) {
    try {
      return { page: 'proof', slug: decodeURIComponent(second) }
    } catch {
      // Malformed percent-encoding. Slugs have none.
    }
  }
  return { page: 'not_found' }
}

/** The browser fires no event for `pushState`. */
const NAVIGATED = 'countersign:navigated'

/** Navigates within the app without reloading the page. */
function navigate(path: string): void {
  window.history.pushState(null, '', path)
  window.dispatchEvent(new Event(NAVIGATED))
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => window.location.pathname)
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('popstate', listener)
  window.addEventListener(NAVIGATED, listener)
  return () => {
    window.removeEventListener('popstate', listener)
    window.removeEventListener(NAVIGATED, listener)
  }
}

export type LinkProps = Omit<ComponentProps<'a'>, 'href'> & { to: string }

/** A link within the app. Clicks that open a new tab or window keep the browser's behavior. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  function follow(event: MouseEvent<HTMLAnchorElement>) {
    onClick?.(event)
    const wantsOther = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0
    if (event.defaultPrevented || wantsOther || rest.target === '_blank') return
    event.preventDefault()
    navigate(to)
  }
  return <a href={to} onClick={follow} {...rest} />
}

/**
 * Moves the focus to the new page's content after a navigation, as a page load would. Otherwise screen readers stay on a removed link.
 * Going back keeps the browser's scroll position.
 */
export function useFocusOnNavigation(target: RefObject<HTMLElement | null>): void {
  const path = usePath()
  const shown = useRef(path)
  useEffect(() => {
    const scrollUp = () => window.scrollTo(0, 0)
    window.addEventListener(NAVIGATED, scrollUp)
    return () => window.removeEventListener(NAVIGATED, scrollUp)
  }, [])
  useEffect(() => {
    if (shown.current === path) return
    shown.current = path
    target.current?.focus({ preventScroll: true })
  }, [path, target])
}
