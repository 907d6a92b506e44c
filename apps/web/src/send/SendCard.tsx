import { type ServiceError, type SignResult, useService, useSign, type WalletInfo } from '@countersign/sdk'
import { useEffect, useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toChainName } from '../words/format.ts'
import { toServiceError } from '../words/toServiceError.ts'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { type Draft, prepareDraft } from './prepareDraft.ts'
import { SendConfirm } from './SendConfirm.tsx'
import { SendForm } from './SendForm.tsx'
import { SendResult, SendSteps, TransactionHash } from './SendResult.tsx'
import { signingSteps } from './sendSteps.ts'

type Step =
  | { name: 'form' | 'checking' }
  | { name: 'confirm' | 'signing'; draft: Draft }
  | { name: 'sent'; draft: Draft; result: SignResult }

export type SendCardProps = {
  wallet: WalletInfo
  /** Something was signed, or has reached a block: balance and history are no longer what they were. */
  onChanged: () => void
  /** The service no longer knows the session. */
  onSessionLost: () => void
}

const EMPTY: SendFields = { to: '', amount: '', data: '', gas: '' }

/** Write, look again, sign, follow. */
export function SendCard({ wallet, onChanged, onSessionLost }: SendCardProps) {
  const config = useConfig()
  const { client } = useService()
  const { signAndSend } = useSign()
  const [fields, setFields] = useState(EMPTY)
  const [errors, setErrors] = useState<FieldErrors>({})
  const [failure, setFailure] = useState<ServiceError | null>(null)
  const [step, setStep] = useState<Step>({ name: 'form' })
  const form = useRef<HTMLFormElement>(null)
  const from = wallet.address

  const heading = useRef<HTMLHeadingElement>(null)
  const wantsFocus = useRef(false)

  // biome-ignore lint/correctness/useExhaustiveDependencies: once the messages are on the page, to the first field that has one
  useEffect(() => {
    if (!wantsFocus.current) return
    wantsFocus.current = false
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid]')
    field?.closest('details')?.setAttribute('open', '')
    field?.focus()
  }, [errors])

  function showErrors(found: FieldErrors) {
    wantsFocus.current = true
    setErrors(found)
  }

  async function review() {
    setFailure(null)
    const parsed = parseFields(fields)
    if ('errors' in parsed) return showErrors(parsed.errors)
    setErrors({})
    setStep({ name: 'checking' })
    try {
      const prepared = await prepareDraft(client.publicClient, { from, payment: parsed.payment })
      if ('draft' in prepared) return setStep({ name: 'confirm', draft: prepared.draft })
      showErrors(prepared.errors)
    } catch (error) {
      setFailure(toServiceError(error))
    }
    setStep({ name: 'form' })
  }

  async function confirm(draft: Draft) {
    setFailure(null)
    setStep({ name: 'signing', draft })
    // The button that had the focus goes.
    heading.current?.focus()
    try {
      const { to, valueWei, data, gas } = draft
      const result = await signAndSend({ to, value: valueWei, data, gas })
      setFields(EMPTY)
      setStep({ name: 'sent', draft, result })
      onChanged()
    } catch (caught) {
      const error = toServiceError(caught)
      if (error.status === 401) onSessionLost()
      if (error.signed) onChanged()
      setFailure(error)
      setStep({ name: 'form' })
    }
  }

  function back() {
    setStep({ name: 'form' })
    // The form is there after the next paint.
    requestAnimationFrame(() => form.current?.querySelector('input')?.focus())
  }

  return (
    <section className="card" aria-labelledby="send-heading">
      <h2 id="send-heading" ref={heading} tabIndex={-1}>
        Send
      </h2>
      {failure === null ? null : (
        <ErrorNotice error={failure}>
          {failure.signed === undefined ? undefined : (
            <>
              <TransactionHash txHash={failure.signed.txHash} />
              <Link to={`/proof/${failure.signed.attestationSlug}`}>See its proof</Link>
            </>
          )}
        </ErrorNotice>
      )}
      {step.name === 'form' || step.name === 'checking' ? (
        <SendForm
          {...{ fields, errors, form, from }}
          isChecking={step.name === 'checking'}
          chain={() => client.publicClient}
          onChange={(change) => {
            setFields((before) => ({ ...before, ...change }))
            setErrors((before) => without(before, Object.keys(change)))
          }}
          onErrors={showErrors}
          onFailure={(error) => setFailure(toServiceError(error))}
          onReview={review}
        />
      ) : null}
      {step.name === 'confirm' ? (
        <SendConfirm
          {...{ draft: step.draft, from }}
          chainName={toChainName(config)}
          onConfirm={() => confirm(step.draft)}
          onChange={back}
        />
      ) : null}
      {step.name === 'signing' ? <SendSteps steps={signingSteps} /> : null}
      {step.name === 'sent' ? (
        <SendResult draft={step.draft} result={step.result} onIncluded={onChanged} onAgain={back} />
      ) : null}
    </section>
  )
}

/** A message goes when its field is changed; the others stay. */
function without(errors: FieldErrors, names: string[]): FieldErrors {
  return Object.fromEntries(Object.entries(errors).filter(([name]) => !names.includes(name)))
}
