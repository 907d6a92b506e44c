import { isPlainObject } from '@countersign/protocol'
import { type ServiceError, ServiceProvider, useService, type WalletInfo } from '@countersign/sdk'
import { Fragment, type ReactNode, useMemo, useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { SignedOut, type SignedOutProps } from './SignedOut.tsx'
import { useServiceResponse } from './serviceResponses.ts'

type SignedInPageProps = {
  title: string
  /** Call `onSessionLost` if the service rejects a request because the session has ended. */
  children: (signedIn: { wallet: WalletInfo; onSessionLost: () => void }) => ReactNode
}

/** A page of the wallet. Without a session, it shows the sign-in and returns here afterwards. */
export function SignedInPage(props: SignedInPageProps) {
  const { apiBaseUrl, chainId, rpcUrl, maxFeePerGas } = useConfig()
  const config = useMemo(
    () => ({ apiBaseUrl, chainId, rpcUrl, maxFeePerGas }),
    [apiBaseUrl, chainId, rpcUrl, maxFeePerGas],
  )
  return (
    <ServiceProvider config={config}>
      <MockBanner />
      <SessionContent {...props} />
    </ServiceProvider>
  )
}

function SessionContent({ title, children }: SignedInPageProps) {
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

  if (!ready && wallet === null) {
    return <WalletSkeleton label={user === null ? 'Checking your session…' : 'Creating your wallet…'} />
  }
  if (user !== null) {
    return (
      <>
        <UserBar title={title} user={user} onSignOut={signOut} />
        <LookupError error={error} onRetry={refresh} />
        {wallet === null ? null : (
          <Fragment key={wallet.address}>{children({ wallet, onSessionLost: refresh })}</Fragment>
        )}
      </>
    )
  }
  if (error !== null && error.code !== 'cookie_blocked') {
    return (
      <section className="plain-page stack" aria-labelledby="wallet-heading">
        <h1 id="wallet-heading">{title}</h1>
        <LookupError error={error} onRetry={refresh} />
      </section>
    )
  }
  const reason: SignedOutProps['reason'] = departure ?? (wasSignedIn.current ? 'session_lost' : 'never_in')
  return <SignedOut reason={reason} error={error} onSignIn={login} />
}

type UserBarProps = { title: string; user: { email: string; name: string | null }; onSignOut: () => void }

function UserBar({ title, user, onSignOut }: UserBarProps) {
  return (
    <div className="who">
      <h1>{title}</h1>
      <p>
        <span className="who-name" title={user.email}>
          {user.name ?? user.email}
        </span>
        <Button look="small" onClick={onSignOut}>
          Sign out
        </Button>
      </p>
    </div>
  )
}

type LookupErrorProps = { error: ServiceError | null; onRetry: () => Promise<void> }

/** A failed lookup, with a retry button. */
function LookupError({ error, onRetry }: LookupErrorProps) {
  const [isTrying, setIsTrying] = useState(false)
  async function retry() {
    if (isTrying) return
    setIsTrying(true)
    await onRetry()
    setIsTrying(false)
  }
  return (
    <ErrorNotice error={error}>
      <Button onClick={retry} isBusy={isTrying}>
        {isTrying ? 'Trying again…' : 'Try again'}
      </Button>
    </ErrorNotice>
  )
}

/** Whether the service reports simulated hardware. Only a proof shows whether that's true. */
const isMock = (body: unknown) => isPlainObject(body) && body.mode === 'mock'

function MockBanner() {
  const { apiBaseUrl } = useConfig()
  if (useServiceResponse(apiBaseUrl, '/health/attestation', isMock) !== true) return null
  return (
    <aside aria-label="Simulated hardware" className="notice tone-warning">
      <p>
        <strong className="notice-title">Simulated hardware.</strong> This service is for development. Its proofs say
        nothing about real hardware.
      </p>
    </aside>
  )
}

/** Shown while the wallet loads. */
export function WalletSkeleton({ label }: { label: string }) {
  return (
    <div className="wallet-grid">
      <p className="visually-hidden" role="status">
        {label}
      </p>
      {['account', 'send', 'history'].map((name) => (
        <div key={name} className={`card area-${name}`} aria-hidden="true">
          <div className="skeleton skeleton-line" />
          <div className="skeleton skeleton-title" />
          <div className="skeleton skeleton-block" />
        </div>
      ))}
    </div>
  )
}
