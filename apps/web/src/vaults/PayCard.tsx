import { type ServiceError, useService } from '@countersign/sdk'
import { prepare, sendPrepared, type Vault } from '@countersign/sdk/vaults'
import { useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { SendForm } from '../send/SendForm.tsx'
import { SendResult, SendSteps, TransactionHash, UnsettledNotice } from '../send/SendResult.tsx'
import { type Step, useSendSession } from '../send/sendSession.ts'
import { signingSteps } from '../send/sendSteps.ts'
import { toShownPayment } from '../send/tellDraft.ts'
import { usePaymentForm } from '../send/usePaymentForm.ts'
import { useUnsettled } from '../send/useUnsettled.ts'
import { Field } from '../ui/Field.tsx'
import { isOfEarlierUser, toServiceError } from '../words/explainError.ts'
import { PendingView } from './PendingView.tsx'
import { type PendingPayment, type PreparedPayment, readPending, writePending } from './pendingPayment.ts'
import { RefusalNotice, VaultErrorNotice } from './VaultErrorNotice.tsx'

export type PayCardProps = {
  vault: Vault
  /** Something was signed, or has reached a block. */
  onChanged: () => void
  onSessionLost: () => void
}

const HOUR_MS = 3_600_000

/** Write, hear what the rules say, have it approved, sign, follow. */
export function PayCard({ vault, onChanged, onSessionLost }: PayCardProps) {
  const config = useConfig()
  const { client } = useService()
  const { address, policy } = vault
  const session = useSendSession(address)
  const { step, failure } = useSyncExternalStore(session.subscribe, session.get)
  const setStep = (next: Step) => session.set({ step: next })
  const setFailure = (next: ServiceError | null) => session.set({ failure: next })
  const { shown, noteUnsettled, forgetUnsettled } = useUnsettled(address)
  const [validForMs, setValidForMs] = useState(HOUR_MS)
  const heading = useRef<HTMLHeadingElement>(null)
  const payment = usePaymentForm({
    from: address,
    isChecking: () => session.get().step.name === 'checking',
    onChecking: (isChecking) => setStep({ name: isChecking ? 'checking' : 'form' }),
    onFailure: (error) => setFailure(error === null ? null : toServiceError(error)),
  })

  // What waits is in the browser, where another tab may have added an approval to it or taken it away, or put another in its place.
  useLayoutEffect(() => {
    const { step } = session.get()
    if (step.name !== 'form' && step.name !== 'pending') return
    const first = toFirstStep(address)
    session.set({ step: first, ...(digestOf(first) === digestOf(step) ? {} : { failure: null }) })
  }, [session, address])

  function fail(caught: unknown) {
    const error = toServiceError(caught)
    if (error.status === 401) onSessionLost()
    if (error.signed !== undefined) noteUnsettled(error.signed)
    setFailure(error)
  }

  function wait(pending: PendingPayment) {
    writePending(address, pending)
    setStep({ name: 'pending', pending })
  }

  async function review() {
    const draft = await payment.review()
    if (draft === undefined) return
    try {
      const { to, valueWei: value, data, gas } = draft
      const prepared = await prepare(client, vault, { kind: 'transaction', to, value, data, gas }, { validForMs })
      wait({ prepared: prepared as PreparedPayment, approvals: [] })
    } catch (error) {
      fail(error)
      setStep({ name: 'form' })
    }
  }

  async function send(pending: PendingPayment) {
    // Two clicks in one turn come before the button is gone.
    if (session.get().step.name !== 'pending') return
    session.set({ step: { name: 'signing' }, failure: null })
    heading.current?.focus()
    const { prepared, approvals } = pending
    try {
      const result = await sendPrepared(client, prepared, approvals)
      writePending(address, undefined)
      forgetUnsettled()
      payment.clear()
      setStep({ name: 'sent', draft: toShownPayment(prepared.content, config.tokens ?? []), result })
      onChanged()
    } catch (caught) {
      const error = toServiceError(caught)
      // Also where no signature is known of: its answer may have been lost. The page of another user would take the place of the notice.
      if (error.status !== 401 && !isOfEarlierUser(error)) onChanged()
      fail(error)
      // It stays: the same payment again has the same number and the same signature, so it can never be a second one.
      setStep({ name: 'pending', pending })
    }
  }

  function goOn() {
    session.set({ step: toFirstStep(address), failure: null })
    payment.focus()
  }

  function back() {
    writePending(address, undefined)
    goOn()
  }

  return (
    <section className="card" aria-labelledby="pay-heading">
      <h2 id="pay-heading" ref={heading} tabIndex={-1}>
        Pay from this vault
      </h2>
      {failure === null ? null : failure.code === 'policy_refused' ? (
        <RefusalNotice error={failure} />
      ) : (
        <VaultErrorNotice error={failure}>
          {failure.signed === undefined ? undefined : (
            <>
              <TransactionHash txHash={failure.signed.txHash} />
              <Link to={`/proof/${failure.signed.attestationSlug}`}>See its proof</Link>
            </>
          )}
        </VaultErrorNotice>
      )}
      {shown === null ? null : <UnsettledNotice signed={shown} onLooked={forgetUnsettled} />}
      {step.name === 'form' || step.name === 'checking' ? (
        <SendForm {...payment.props} isChecking={step.name === 'checking'} onReview={review}>
          {policy.approvers.length === 0 ? null : (
            <Field id="pay-valid" label="If it needs approval, that holds for">
              {(control) => (
                <select
                  {...control}
                  value={validForMs}
                  onChange={({ target }) => setValidForMs(Number(target.value))}
                  disabled={step.name === 'checking'}
                >
                  <option value={HOUR_MS}>one hour</option>
                  <option value={24 * HOUR_MS}>almost 24 hours</option>
                </select>
              )}
            </Field>
          )}
        </SendForm>
      ) : null}
      {step.name === 'pending' ? (
        <PendingView pending={step.pending} onChange={wait} onSend={() => void send(step.pending)} onBack={back} />
      ) : null}
      {step.name === 'signing' ? <SendSteps steps={signingSteps} /> : null}
      {step.name === 'sent' ? (
        <SendResult draft={step.draft} result={step.result} onIncluded={onChanged} onAgain={goOn} />
      ) : null}
    </section>
  )
}

const digestOf = (step: Step) => (step.name === 'pending' ? step.pending.prepared.digest : undefined)

function toFirstStep(address: string): Step {
  const pending = readPending(address)
  return pending === undefined ? { name: 'form' } : { name: 'pending', pending }
}
