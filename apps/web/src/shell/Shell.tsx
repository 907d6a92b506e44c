import { type MouseEvent, type ReactNode, useEffect, useRef } from 'react'
import { Link, parseRoute, type Route, useFocusOnNavigation, usePath } from '../router.tsx'
import { ThemeToggle } from './ThemeToggle.tsx'

const TITLES: Record<Route['page'], string> = {
  wallet: 'Wallet',
  sign: 'Sign a message',
  proof: 'Proof',
  verify: 'Verify a proof',
  vaults: 'Vaults',
  new_vault: 'Make a vault',
  vault: 'Vault',
  approve: 'Approve a payment',
  passkey: 'Make a passkey for a vault',
  not_found: 'Not found',
}

/** What every page has around it. */
export function Shell({ children }: { children: ReactNode }) {
  const main = useRef<HTMLElement>(null)
  const { page } = parseRoute(usePath())
  useFocusOnNavigation(main)
  useEffect(() => {
    document.title = `${TITLES[page]} · Countersign`
  }, [page])
  const current = (...names: Route['page'][]) => (names.includes(page) ? ({ 'aria-current': 'page' } as const) : {})
  /** Without the fragment, which is the approver's payment on `/approve`. */
  function skip(event: MouseEvent) {
    event.preventDefault()
    main.current?.focus()
  }
  return (
    <>
      <Link className="skip-link" to="#main" onClick={skip}>
        Skip to the content
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
        <p>Countersign is free software under the AGPL-3.0. Do not take its word: verify the proofs.</p>
      </footer>
    </>
  )
}
