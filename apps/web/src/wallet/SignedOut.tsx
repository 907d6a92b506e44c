import { isPlainObject } from '@countersign/protocol'
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
  /** An error of the sign-in, or null. */
  error: ServiceError | null
  /** Whether the user chose a session without a browser key. */
  isCookie: boolean
  onChoose: (isCookie: boolean) => void
}

export function SignedOut({ reason, error, onSignIn, isCookie, onChoose }: SignedOutProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const departure = DEPARTURES[reason]
  const outcome = useOutcome()
  const isCancelled = outcome === 'cancelled' && reason === 'never_in'
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
      <SignInError error={error} onChoose={onChoose} />
      {isCookie ? <CookieNotice isFailed={outcome === 'failed'} onChoose={onChoose} /> : null}
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

type ChoiceProps = Pick<SignedOutProps, 'onChoose'>

const COOKIE_RISK = 'Anyone with a copy of the session’s cookie could sign with your wallet until the session expires.'

const isCookieSession = (body: unknown) => isPlainObject(body) && body.kind === 'cookie'

/** The error, with the choice of a cookie session where there is one. */
function SignInError({ error, onChoose }: ChoiceProps & Pick<SignedOutProps, 'error'>) {
  const { apiBaseUrl } = useConfig()
  const isUnbound = error?.code === 'session_not_bound'
  const hasCookie = useServiceResponse(isUnbound ? apiBaseUrl : null, '/auth/session', isCookieSession) === true
  const isOffered = hasCookie || error?.code === 'client_key_unavailable'
  const explanation = hasCookie
    ? { title: 'Your session has no browser key', advice: `Sign in again to use a key. ${COOKIE_RISK}` }
    : isOffered
      ? {
          title: 'This browser can’t store a key',
          advice: `Use another browser or a normal window, or sign in with a cookie only. ${COOKIE_RISK}`,
        }
      : undefined
  return (
    <ErrorNotice error={error} explanation={explanation}>
      {isOffered ? (
        <Button look="small" onClick={() => onChoose(true)}>
          {hasCookie ? 'Continue without a key' : 'Use a cookie only'}
        </Button>
      ) : null}
    </ErrorNotice>
  )
}

/** What a session without a browser key means. `isFailed`: the service's error page led back here. */
function CookieNotice({ isFailed, onChoose }: ChoiceProps & { isFailed: boolean }) {
  return (
    <Notice
      tone="warning"
      title={isFailed ? 'The sign-in without a browser key failed' : 'You’ll sign in without a browser key'}
      isAlert
    >
      <p>
        {isFailed
          ? 'This service may require a key. Use another browser, or a normal window instead of a private one.'
          : `${COOKIE_RISK} Sign out when you’re done.`}
      </p>
      <div className="actions">
        <Button look="small" onClick={() => onChoose(false)}>
          Use a browser key
        </Button>
      </div>
    </Notice>
  )
}

/** The result of a sign-in that led back without a session. Removes the parameter from the URL, so that a reload doesn't show it again. */
function useOutcome(): string | null {
  const [outcome] = useState(() => new URL(window.location.href).searchParams.get('sign_in'))
  useEffect(() => {
    const url = new URL(window.location.href)
    if (!url.searchParams.has('sign_in')) return
    url.searchParams.delete('sign_in')
    window.history.replaceState(window.history.state, '', url)
  }, [])
  return outcome
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
