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

/** Pages with a path of one part, which has their name. */
const PLAIN = ['verify', 'sign', 'vaults', 'approve', 'passkey'] as const

/** Which page a path is. */
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
      // A stray per cent sign: no slug has one.
    }
  }
  return { page: 'not_found' }
}

/** `pushState` tells nobody, so we do. */
const NAVIGATED = 'countersign:navigated'

/** Goes to a path of this app, without loading the page again. */
function navigate(path: string): void {
  window.history.pushState(null, '', path)
  window.dispatchEvent(new Event(NAVIGATED))
}

/** The path that is shown. */
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

/** A link to a page of this app. New tabs and windows stay the browser's affair. */
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
 * After a navigation the focus goes to the new page's content, as it would on a real page load: otherwise a screen reader stays on
 * a link that is gone. Going back leaves the scroll position to the browser.
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
