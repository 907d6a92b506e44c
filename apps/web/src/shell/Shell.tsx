import { type MouseEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, parseRoute, type Route, useFocusOnNavigation, usePath } from '../router.tsx'

const TITLES: Record<Route['page'], string> = {
  wallet: 'Wallet',
  sign: 'Sign a message',
  proof: 'Proof',
  verify: 'Verify a proof',
  vaults: 'Vaults',
  new_vault: 'Create vault',
  vault: 'Vault',
  approve: 'Approval request',
  passkey: 'Create a passkey',
  not_found: 'Page not found',
}

/** Header, navigation and footer of every page. */
export function Shell({ children }: { children: ReactNode }) {
  const main = useRef<HTMLElement>(null)
  const { page } = parseRoute(usePath())
  useFocusOnNavigation(main)
  useEffect(() => {
    document.title = `${TITLES[page]} · Countersign`
  }, [page])
  const current = (...names: Route['page'][]) => (names.includes(page) ? ({ 'aria-current': 'page' } as const) : {})
  /** Doesn't change the fragment, which holds the payment on `/approve`. */
  function skip(event: MouseEvent) {
    event.preventDefault()
    main.current?.focus()
  }
  return (
    <>
      <Link className="skip-link" to="#main" onClick={skip}>
        Skip to content
      </Link>
      <header className="site-header">
        <div className="site-header-inner">
          <Link to="/" className="wordmark">
            <svg viewBox="0 0 32 32" aria-hidden="true">
              <path d="M7 14.5l6 6L25.5 7" />
              <path d="M7 27h18" />
            </svg>
            <span className="wordmark-name">Countersign</span>
          </Link>
          <nav aria-label="Pages">
            <Link to="/" {...current('wallet')}>
              Wallet
            </Link>
            <Link to="/vaults" {...current('vaults', 'new_vault', 'vault')}>
              Vaults
            </Link>
            <Link to="/sign" {...current('sign')}>
              Sign
            </Link>
            <Link to="/verify" {...current('verify')}>
              Verify
            </Link>
          </nav>
          <ThemeToggle />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      <footer className="site-footer">
        <p>Countersign is free software under the AGPL-3.0. Don’t trust it: verify its proofs.</p>
      </footer>
    </>
  )
}

/** Toggles between light and dark. The choice is stored. */
function ThemeToggle() {
  const [theme, setTheme] = useState(readTheme)
  const other = theme === 'dark' ? 'light' : 'dark'
  function toggle() {
    chooseTheme(other)
    setTheme(other)
  }
  return (
    <button type="button" className="icon-button" onClick={toggle} aria-label={`Switch to ${other} theme`}>
      <svg viewBox="0 0 24 24" aria-hidden="true">
        {theme === 'dark' ? (
          <path d="M12 4V2m0 20v-2m8-8h2M2 12h2m13.7-5.7 1.4-1.4M4.9 19.1l1.4-1.4m11.4 0 1.4 1.4M4.9 4.9l1.4 1.4M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z" />
        ) : (
          <path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z" />
        )}
      </svg>
    </button>
  )
}

/** The visitor's choice. Without one, the system setting applies. */
type Theme = 'light' | 'dark'

/** `public/theme.js` reads it too, before the first paint. */
const KEY = 'countersign:theme'

function readTheme(): Theme {
  const { theme } = document.documentElement.dataset
  if (theme === 'light' || theme === 'dark') return theme
  return window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

function chooseTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme
  try {
    window.localStorage.setItem(KEY, theme)
  } catch {
    // Storage is blocked, so the choice lasts until the page closes.
  }
}
