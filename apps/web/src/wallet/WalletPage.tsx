import { ServiceProvider, useService, type WalletInfo } from '@countersign/sdk'
import { useCallback, useMemo, useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { HistoryCard } from '../history/HistoryCard.tsx'
import { useHistory } from '../history/useHistory.ts'
import { SendCard } from '../send/SendCard.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { AccountCard } from './AccountCard.tsx'
import { SignedOut, type SignedOutProps } from './SignedOut.tsx'
import { useBalance } from './useBalance.ts'
import { useServiceMode } from './useServiceMode.ts'
import { WalletSkeleton } from './WalletSkeleton.tsx'

/** The wallet, signed in or not. */
export function WalletPage() {
  const { apiBaseUrl, chainId, rpcUrl, maxFeePerGas } = useConfig()
  const config = useMemo(
    () => ({ apiBaseUrl, chainId, rpcUrl, maxFeePerGas }),
    [apiBaseUrl, chainId, rpcUrl, maxFeePerGas],
  )
  return (
    <ServiceProvider config={config}>
      <MockBanner />
      <Wallet />
    </ServiceProvider>
  )
}

function Wallet() {
  const { user, wallet, ready, error, login, logout, refresh } = useService()
  const [departure, setDeparture] = useState<'signed_out' | 'signed_out_here_only' | null>(null)
  const wasSignedIn = useRef(false)
  if (user !== null) wasSignedIn.current = true
  if (user !== null && departure !== null) setDeparture(null)

  async function signOut() {
    try {
      await logout()
      setDeparture('signed_out')
    } catch {
      setDeparture('signed_out_here_only')
    }
  }

  if (user !== null && wallet !== null) {
    return (
      <>
        <WhoIsIn user={user} onSignOut={signOut} />
        {error === null ? null : <Unreachable error={error} onRetry={refresh} />}
        <SignedIn key={wallet.address} wallet={wallet} onSessionLost={refresh} />
      </>
    )
  }
  if (!ready) return <WalletSkeleton label={user === null ? 'Looking for your session' : 'Making your wallet'} />
  if (user !== null) {
    return (
      <>
        <WhoIsIn user={user} onSignOut={signOut} />
        {error === null ? null : <Unreachable error={error} onRetry={refresh} />}
      </>
    )
  }
  if (error !== null && error.code !== 'cookie_blocked') {
    return (
      <section className="plain-page" aria-labelledby="wallet-heading">
        <h1 id="wallet-heading">Wallet</h1>
        <Unreachable error={error} onRetry={refresh} />
      </section>
    )
  }
  const reason: SignedOutProps['reason'] = departure ?? (wasSignedIn.current ? 'session_lost' : 'never_in')
  return <SignedOut reason={reason} error={error} onSignIn={login} />
}

function WhoIsIn({ user, onSignOut }: { user: { email: string; name: string | null }; onSignOut: () => void }) {
  return (
    <div className="who">
      <h1>Wallet</h1>
      <p>
        <span className="who-name" title={user.email}>
          {user.name ?? user.email}
        </span>
        <button type="button" className="button button-small" onClick={onSignOut}>
          Sign out
        </button>
      </p>
    </div>
  )
}

type UnreachableProps = { error: NonNullable<ReturnType<typeof useService>['error']>; onRetry: () => Promise<void> }

/** The lookup failed: what, and a way to try again. */
function Unreachable({ error, onRetry }: UnreachableProps) {
  const [isTrying, setIsTrying] = useState(false)
  async function retry() {
    if (isTrying) return
    setIsTrying(true)
    await onRetry()
    setIsTrying(false)
  }
  return (
    <ErrorNotice error={error}>
      <button type="button" className="button" onClick={retry} aria-disabled={isTrying}>
        {isTrying ? 'Trying …' : 'Try again'}
      </button>
    </ErrorNotice>
  )
}

function SignedIn({ wallet, onSessionLost }: { wallet: WalletInfo; onSessionLost: () => void }) {
  const balance = useBalance(wallet.address)
  const history = useHistory({ address: wallet.address, onSessionLost })
  const { refresh } = balance
  const { reload } = history
  const onChanged = useCallback(() => {
    void refresh()
    void reload()
  }, [refresh, reload])
  return (
    <div className="wallet-grid">
      <div className="area-account">
        <AccountCard wallet={wallet} balance={balance} />
      </div>
      <div className="area-send">
        <SendCard wallet={wallet} onChanged={onChanged} onSessionLost={onSessionLost} />
      </div>
      <div className="area-history">
        <HistoryCard history={history} />
      </div>
    </div>
  )
}

function MockBanner() {
  const { apiBaseUrl } = useConfig()
  if (useServiceMode(apiBaseUrl) !== 'mock') return null
  return (
    <aside aria-label="Simulated hardware" className="notice notice-warning">
      <p>
        <strong className="notice-title">Simulated hardware.</strong> This service runs on simulated silicon, for
        development: its proofs say nothing about any real machine.
      </p>
    </aside>
  )
}
