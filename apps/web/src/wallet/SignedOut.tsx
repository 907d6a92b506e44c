import type { ServiceError } from '@countersign/sdk'
import { useEffect, useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { ErrorNotice, Notice, type Tone } from '../ui/Notice.tsx'
import { parseProviders, useServiceResponse } from './serviceResponses.ts'

export type SignedOutProps = SignInCardProps & {
  /** Why no user is signed in. */
  reason: 'never_in' | 'session_lost' | 'signed_out' | 'signed_out_here_only'
  /** `cookie_blocked` or null. */
  error: ServiceError | null
}

export function SignedOut({ reason, error, onSignIn }: SignedOutProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const departure = DEPARTURES[reason]
  const isCancelled = useCancelled() && reason === 'never_in'
  useEffect(() => {
    // The focused element was removed with the wallet.
    if (reason !== 'never_in') heading.current?.focus()
  }, [reason])
  return (
    <section className="welcome" aria-labelledby="welcome-heading">
      {departure === undefined ? null : (
        <Notice tone={departure.tone} title={departure.title} isAlert>
          {departure.text === undefined ? null : <p>{departure.text}</p>}
        </Notice>
      )}
      {isCancelled ? (
        <Notice tone="good" title="Sign-in cancelled" isAlert>
          <p>Nothing has changed. You can sign in again at any time.</p>
        </Notice>
      ) : null}
      <ErrorNotice error={error} />
      <h1 id="welcome-heading" ref={heading} tabIndex={-1}>
        A wallet that proves every signature
      </h1>
      <p className="lead">
        Your key stays in a hardware enclave. Every signature comes with a public proof that anyone can check without
        trusting the operator.
      </p>
      <SignInCard onSignIn={onSignIn} />
    </section>
  )
}

/** Whether the user cancelled the sign-in. Removes the parameter from the URL, so that a reload doesn't show it again. */
function useCancelled(): boolean {
  const [isCancelled] = useState(() => new URL(window.location.href).searchParams.get('sign_in') === 'cancelled')
  useEffect(() => {
    const url = new URL(window.location.href)
    if (!url.searchParams.has('sign_in')) return
    url.searchParams.delete('sign_in')
    window.history.replaceState(window.history.state, '', url)
  }, [])
  return isCancelled
}

const DEPARTURES: Partial<Record<SignedOutProps['reason'], { tone: Tone; title: string; text?: string }>> = {
  session_lost: {
    tone: 'good',
    title: 'Your session has ended',
    text: 'Sign in again to continue. Your wallet and history are unchanged.',
  },
  signed_out: { tone: 'good', title: 'You’re signed out' },
  signed_out_here_only: {
    tone: 'warning',
    title: 'You’re signed out on this page only',
    text: 'The service couldn’t be reached, so your session stays active until it expires. On a shared computer, sign in and out again, or clear this site’s cookies.',
  },
}

type SignInCardProps = {
  /** Without a provider, uses the default one. */
  onSignIn: (options?: { provider: string }) => void
}

function SignInCard({ onSignIn }: SignInCardProps) {
  const providers = useServiceResponse(useConfig().apiBaseUrl, '/auth', parseProviders)
  return (
    <section className="card sign-in" aria-label="Sign in">
      {providers === null ? (
        <>
          <p className="visually-hidden" role="status">
            Loading sign-in options…
          </p>
          <div className="skeleton sign-in-skeleton" aria-hidden="true" />
        </>
      ) : null}
      {providers?.length === 0 ? (
        <Button look="large" onClick={() => onSignIn()}>
          Sign in
        </Button>
      ) : null}
      {providers?.map(({ id, name, icon }) => (
        <button
          key={id}
          type="button"
          className={`button button-large ${providers.length > 1 ? 'button-quiet' : ''}`}
          onClick={() => onSignIn({ provider: id })}
        >
          {icon === null ? null : <img src={icon} alt="" width="24" height="24" />}
          Continue with {name}
        </button>
      ))}
      <p className="fine-print">
        Your wallet is created when you first sign in. There’s nothing to install or write down.
      </p>
      <p className="fine-print">
        No wallet needed: <Link to="/verify">Verify a proof</Link>
      </p>
    </section>
  )
}
