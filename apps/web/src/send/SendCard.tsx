import { type ServiceError, useService, useSign, type WalletInfo } from '@countersign/sdk'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { useTokens } from '../token/useTokens.ts'
import { ErrorNotice, Notice } from '../ui/Notice.tsx'
import { toChainName } from '../words/format.ts'
import { toServiceError } from '../words/toServiceError.ts'
import { type FieldErrors, parseFields, type SendFields } from './parseFields.ts'
import { type Draft, prepareAgain, prepareDraft, prepareMax } from './prepareDraft.ts'
import { SendConfirm } from './SendConfirm.tsx'
import { SendForm } from './SendForm.tsx'
import { SendResult, SendSteps, TransactionHash } from './SendResult.tsx'
import { type Step, useSendSession } from './sendSession.ts'
import { signingSteps } from './sendSteps.ts'
import { tellAmount } from './tellDraft.ts'

export type SendCardProps = {
  wallet: WalletInfo
  /** Something was signed, or has reached a block: balance and history are no longer what they were. */
  onChanged: () => void
  /** The service no longer knows the session. */
  onSessionLost: () => void
}

const EMPTY: SendFields = { asset: '', to: '', amount: '', data: '', gas: '' }

/** Write, look again, sign, follow. */
export function SendCard({ wallet, onChanged, onSessionLost }: SendCardProps) {
  const config = useConfig()
  const { client } = useService()
  const { signAndSend } = useSign()
  const [fields, setFields] = useState(EMPTY)
  const [errors, setErrors] = useState<FieldErrors>({})
  /** The amount is whatever can be sent at most, at the fees of the time. */
  const [isMax, setIsMax] = useState(false)
  const tokens = useTokens()
  const from = wallet.address
  const session = useSendSession(from)
  const { step, failure, unsettled } = useSyncExternalStore(session.subscribe, session.get)
  const setStep = (next: Step) => session.set({ step: next })
  const setFailure = (next: ServiceError | null) => session.set({ failure: next })
  const form = useRef<HTMLFormElement>(null)

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

  // A page that is closed between signature and broadcast leaves a public signature behind, and nothing sent.
  useEffect(() => {
    if (step.name !== 'signing') return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [step.name])

  /** Reads the form and asks the chain. The draft, if nothing is wrong with it. */
  async function check(form: SendFields, prepare: typeof prepareDraft): Promise<Draft | undefined> {
    setFailure(null)
    const parsed = parseFields(form, tokens)
    if ('errors' in parsed) return void showErrors(parsed.errors)
    setErrors({})
    setStep({ name: 'checking' })
    try {
      const prepared = await prepare(client.publicClient, { from, payment: parsed.payment })
      if ('draft' in prepared) return prepared.draft
      showErrors(prepared.errors)
    } catch (error) {
      setFailure(toServiceError(error))
    }
    setStep({ name: 'form' })
  }

  async function review() {
    const draft = await check(fields, isMax ? prepareMax : prepareDraft)
    if (draft === undefined) return
    if (draft.isMax) setFields((before) => ({ ...before, amount: toAmountText(draft) }))
    setStep({ name: 'confirm', draft })
  }

  /** Before there is a recipient, the wallet itself is as good. */
  async function fillMax() {
    if (session.get().step.name === 'checking') return
    const hasRecipient = !('errors' in parseFields({ ...fields, amount: '1' }, tokens))
    const draft = await check({ ...fields, to: hasRecipient ? fields.to : from, amount: '1' }, prepareMax)
    if (draft === undefined) return
    setFields((before) => ({ ...before, amount: toAmountText(draft) }))
    setIsMax(true)
    setStep({ name: 'form' })
  }

  async function confirm(draft: Draft) {
    // Two clicks in one turn come before the button is gone.
    if (session.get().step.name !== 'confirm') return
    session.set({ step: { name: 'signing', draft }, failure: null })
    // The button that had the focus goes.
    heading.current?.focus()
    try {
      const { to, valueWei, data, gas } = draft
      const again = await prepareAgain(client.publicClient, { from, draft })
      if ('errors' in again) {
        showErrors(again.errors)
        return setStep({ name: 'form' })
      }
      if (again.draft.isDearer) return setStep({ name: 'confirm', draft: again.draft })
      const result = await signAndSend({ to, value: valueWei, data, gas })
      setFields(EMPTY)
      setIsMax(false)
      session.set({ step: { name: 'sent', draft, result }, unsettled: null })
      onChanged()
    } catch (caught) {
      const error = toServiceError(caught)
      if (error.status === 401) onSessionLost()
      // Also where no signature is known of: its answer may have been lost.
      else onChanged()
      session.set({ step: { name: 'form' }, failure: error, unsettled: error.signed ?? session.get().unsettled })
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
      {unsettled !== null && failure === null && step.name !== 'sent' ? (
        <Notice tone="warning" title="A payment that was signed before may still go through">
          <p>Whatever you send now would be a second one. Look for the earlier transaction first.</p>
          <TransactionHash txHash={unsettled.txHash} />
          <div className="actions">
            <button type="button" className="button button-small" onClick={() => session.set({ unsettled: null })}>
              I have looked
            </button>
          </div>
        </Notice>
      ) : null}
      {step.name === 'form' || step.name === 'checking' ? (
        <SendForm
          {...{ fields, errors, form, from, tokens }}
          isChecking={step.name === 'checking'}
          chain={() => client.publicClient}
          onChange={(change) => {
            setFields((before) => ({ ...before, ...change }))
            if ('amount' in change || 'data' in change) setIsMax(false)
            setErrors((before) => without(before, Object.keys(change)))
          }}
          onErrors={showErrors}
          onFailure={(error) => setFailure(toServiceError(error))}
          onMax={fillMax}
          onReview={review}
        />
      ) : null}
      {step.name === 'confirm' ? (
        <SendConfirm
          {...{ draft: step.draft, from }}
          chainName={toChainName(config)}
          maxFeePerGas={client.config.maxFeePerGas}
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

function toAmountText(draft: Draft): string {
  return tellAmount(draft).split(' ')[0] ?? ''
}

/** A message goes when its field is changed; the others stay. */
function without(errors: FieldErrors, names: string[]): FieldErrors {
  return Object.fromEntries(Object.entries(errors).filter(([name]) => !names.includes(name)))
}
