import type { ServiceError } from '@countersign/sdk'
import { useEffect, useRef } from 'react'
import { Link } from '../router.tsx'
import { ErrorNotice, Notice } from '../ui/Notice.tsx'

export type SignedOutProps = {
  /** Why there is nobody: a person who was here a moment ago wants to know. */
  reason: 'never_in' | 'session_lost' | 'signed_out' | 'signed_out_here_only'
  /** `cookie_blocked`, if anything. */
  error: ServiceError | null
  onSignIn: () => void
}

/** The first thing a visitor sees. */
export function SignedOut({ reason, error, onSignIn }: SignedOutProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // What had the focus before is gone with the wallet.
    if (reason !== 'never_in') heading.current?.focus()
  }, [reason])
  return (
    <section className="welcome" aria-labelledby="welcome-heading">
      <SignOutNotice reason={reason} />
      {error === null ? null : <ErrorNotice error={error} />}
      <h1 id="welcome-heading" ref={heading} tabIndex={-1}>
        A wallet that proves every signature
      </h1>
      <p className="lead">
        Your key stays in a hardware enclave, and each signature comes with a public proof that anyone can check without
        trusting the operator of this service.
      </p>
      <p className="actions">
        <button type="button" className="button button-large" onClick={onSignIn}>
          Sign in
        </button>
        <Link to="/verify" className="button button-large button-quiet">
          Verify a proof
        </Link>
      </p>
      <p className="fine-print">
        Signing in makes your wallet, if you have none yet. There is nothing to install or write down.
      </p>
    </section>
  )
}

function SignOutNotice({ reason }: Pick<SignedOutProps, 'reason'>) {
  switch (reason) {
    case 'never_in':
      return null
    case 'session_lost':
      return (
        <Notice tone="info" title="Your session has ended" isAlert>
          <p>Sign in again to go on. Your wallet and its history are as they were.</p>
        </Notice>
      )
    case 'signed_out':
      return <Notice tone="info" title="You are signed out" isAlert />
    case 'signed_out_here_only':
      return (
        <Notice tone="warning" title="You are signed out on this page only" isAlert>
          <p>
            The service could not be told, so the session itself goes on until it lapses. On a shared computer, sign in
            and out again, or clear this site’s cookies.
          </p>
        </Notice>
      )
  }
}
