import './sign.css'
import { type ServiceError, type SignOffChainResult, useService, type WalletInfo } from '@countersign/sdk'
import { useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { ErrorNotice } from '../ui/Notice.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { SignedInPage } from '../wallet/SignedInPage.tsx'
import { type SessionKind, useSession } from '../wallet/session.ts'
import { toServiceError } from '../words/explainError.ts'
import { ContentDetails } from './ContentDetails.tsx'
import { explainSigning } from './explainSigning.ts'
import { type FormContent, parseSignFields, type SignFields } from './parseSignFields.ts'
import { SignForm } from './SignForm.tsx'
import { SignResult } from './SignResult.tsx'

type SignCardProps = {
  wallet: WalletInfo
  /** The session has expired. */
  onSessionLost: () => void
}

type SignStep =
  | { name: 'form' }
  | { name: 'confirm' | 'signing'; shown: FormContent }
  | { name: 'signed'; shown: FormContent; result: SignOffChainResult; isSaved: boolean }

/**
 * The service returns the opening only once, so it must survive while the visitor is on another page. If the tab closes before it's saved,
 * no one can open the proof.
 */
const SIGNING: SessionKind<{ step: SignStep; failure: ServiceError | null }> = {
  initial: { step: { name: 'form' }, failure: null },
  isAtRisk: ({ step }) => step.name === 'signing' || (step.name === 'signed' && !step.isSaved),
}

const EMPTY: SignFields = { kind: 'text', text: '' }

export function SignCard({ wallet, onSessionLost }: SignCardProps) {
  const { chainId } = useConfig()
  const { client } = useService()
  const [fields, setFields] = useState(EMPTY)
  const [error, setError] = useState<string | null>(null)
  const [{ step, failure }, session] = useSession(SIGNING, wallet.address)
  const form = useRef<HTMLFormElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  const setStep = (next: SignStep) => session.set({ step: next })

  function review() {
    const parsed = parseSignFields(fields, { chainId })
    session.set({ failure: null })
    if ('shown' in parsed) return setStep({ name: 'confirm', shown: parsed.shown })
    setError(parsed.error)
    focusText()
  }

  async function confirm(shown: FormContent) {
    // A double click arrives before the button is removed, and would create a second proof.
    if (session.get().step.name !== 'confirm') return
    session.set({ step: { name: 'signing', shown }, failure: null })
    heading.current?.focus()
    try {
      const result = await (shown.kind === 'message'
        ? client.signMessage({ message: { raw: shown.content.message } }, { wallet })
        : client.signTypedData(shown.content, { wallet }))
      setFields(EMPTY)
      setStep({ name: 'signed', shown, result, isSaved: false })
    } catch (caught) {
      const refused = toServiceError(caught)
      if (refused.status === 401) onSessionLost()
      session.set({ step: { name: 'form' }, failure: refused })
    }
  }

  /** Waits for the form to render. */
  function focusText() {
    requestAnimationFrame(() => form.current?.querySelector('textarea')?.focus())
  }

  function back() {
    setStep({ name: 'form' })
    focusText()
  }

  return (
    <section className="card card-narrow" aria-labelledby="sign-heading">
      <h2 id="sign-heading" ref={heading} tabIndex={-1}>
        {step.name === 'signed' ? 'Signed' : 'New signature'}
      </h2>
      <ErrorNotice error={failure} explanation={failure === null ? undefined : explainSigning(failure)} />
      {step.name === 'form' ? (
        <SignForm
          fields={fields}
          error={error}
          form={form}
          onChange={(change) => {
            setFields((before) => ({ ...before, ...change }))
            setError(null)
          }}
          onReview={review}
        />
      ) : null}
      {step.name === 'confirm' ? (
        <ConfirmStep
          id="confirm-heading"
          title="Review before you sign"
          action="Sign"
          onConfirm={() => void confirm(step.shown)}
          onChange={back}
        >
          <ContentDetails shown={step.shown} wallet={wallet.address} />
          <p className="fine-print">
            Anyone with the signature can use it. The content and signature aren’t published. The proof that this wallet
            signed something at this time is public and permanent.
          </p>
        </ConfirmStep>
      ) : null}
      {step.name === 'signing' ? (
        <p role="status">Signing… Keep this page open. The result is delivered only once.</p>
      ) : null}
      {step.name === 'signed' ? (
        <SignResult {...step} onSaved={() => setStep({ ...step, isSaved: true })} onAgain={back} />
      ) : null}
    </section>
  )
}

export function SignPage() {
  const { signInDemoUrl } = useConfig()
  return (
    <SignedInPage title="Sign a message">
      {(signedIn) => (
        <>
          <SignCard {...signedIn} />
          {signInDemoUrl === undefined ? null : (
            <p className="fine-print">
              Other sites can request signatures too: <a href={signInDemoUrl}>sign in to a demo site with Ethereum</a>.
            </p>
          )}
        </>
      )}
    </SignedInPage>
  )
}
