import { isPlainObject } from '@countersign/protocol'
import { type ServiceError, ServiceProvider, useService, type WalletInfo } from '@countersign/sdk'
import { boundSession } from '@countersign/sdk/session'
import { Fragment, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { readStored, writeStored } from '../ui/stored.ts'
import { SignedOut, type SignedOutProps } from './SignedOut.tsx'
import { useServiceResponse } from './serviceResponses.ts'

type SignedInPageProps = {
  title: string
  children: (signedIn: SignedInProps) => ReactNode
}

export type SignedInProps = {
  wallet: WalletInfo
  /** Call it if the service rejects a request because the session has ended. */
  onSessionLost: () => void
  onSignOut: () => Promise<void>
}

type Departure = 'signed_out' | 'signed_out_here_only' | null

/** These have an answer on the sign-in page. */
const SIGN_IN_ERRORS = ['cookie_blocked', 'client_key_unavailable', 'session_not_bound']

/** A page of the wallet. Without a session, it shows the sign-in and returns here afterwards. */
export function SignedInPage(props: SignedInPageProps) {
  const { apiBaseUrl, chainId, rpcUrl, maxFeePerGas } = useConfig()
  const [isCookie, setIsCookie] = useCookieChoice(apiBaseUrl)
  const [departure, setDeparture] = useState<Departure>(null)
  const config = useMemo(
    () => ({ apiBaseUrl, chainId, rpcUrl, maxFeePerGas, session: isCookie ? undefined : boundSession() }),
    [apiBaseUrl, chainId, rpcUrl, maxFeePerGas, isCookie],
  )
  return (
    <ServiceProvider key={String(isCookie)} config={config}>
      <MockBanner />
      <SessionContent {...props} {...{ isCookie, setIsCookie, departure, setDeparture }} />
    </ServiceProvider>
  )
}

/** Whether the user chose a session without a browser key. Only for this tab, and until they sign out. */
function useCookieChoice(apiBaseUrl: string) {
  const key = `countersign:cookie:${apiBaseUrl}`
  const [isCookie, setIsCookie] = useState(() => readStored(sessionStorage, key) === true)
  function choose(next: boolean) {
    writeStored(sessionStorage, key, next || undefined)
    setIsCookie(next)
  }
  return [isCookie, choose] as const
}

type SessionContentProps = SignedInPageProps & {
  isCookie: boolean
  setIsCookie: (isCookie: boolean) => void
  departure: Departure
  setDeparture: (departure: Departure) => void
}

function SessionContent({ title, children, isCookie, setIsCookie, departure, setDeparture }: SessionContentProps) {
  const { user, wallet, ready, error, login, logout, refresh } = useService()
  const wasSignedIn = useRef(false)
  if (user !== null) wasSignedIn.current = true
  useEffect(() => {
    if (user !== null) setDeparture(null)
  }, [user, setDeparture])
  const isSignInError = error !== null && SIGN_IN_ERRORS.includes(error.code)

  async function signOut() {
    const departure = await logout().then(
      () => 'signed_out' as const,
      () => 'signed_out_here_only' as const,
    )
    setDeparture(departure)
    setIsCookie(false)
  }

  if (!ready && wallet === null) {
    return <WalletSkeleton label={user === null ? 'Checking your session…' : 'Creating your wallet…'} />
  }
  if (user !== null && !isSignInError) {
    return (
      <>
        <UserBar title={title} user={user} onSignOut={signOut} />
        <LookupError error={error} onRetry={refresh} />
        {wallet === null ? null : (
          <Fragment key={wallet.address}>{children({ wallet, onSessionLost: refresh, onSignOut: signOut })}</Fragment>
        )}
      </>
    )
  }
  if (error !== null && !isSignInError) {
    return (
      <section className="plain-page stack" aria-labelledby="wallet-heading">
        <h1 id="wallet-heading">{title}</h1>
        <LookupError error={error} onRetry={refresh} />
      </section>
    )
  }
  const isLost = wasSignedIn.current && error === null
  const reason: SignedOutProps['reason'] = departure ?? (isLost ? 'session_lost' : 'never_in')
  return <SignedOut reason={reason} error={error} onSignIn={login} isCookie={isCookie} onChoose={setIsCookie} />
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
