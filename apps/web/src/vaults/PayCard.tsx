import { useService } from '@countersign/sdk'
import { prepare, sendPrepared, type Vault } from '@countersign/sdk/vaults'
import { useLayoutEffect, useState } from 'react'
import { useConfig } from '../config.ts'
import { PaymentCard } from '../send/PaymentCard.tsx'
import type { Step } from '../send/sendSession.ts'
import { toShownPayment } from '../send/shownPayment.ts'
import { usePayment } from '../send/usePayment.ts'
import { Field } from '../ui/Field.tsx'
import { isOfEarlierUser, toServiceError } from '../words/explainError.ts'
import { PendingView } from './PendingView.tsx'
import { type PendingPayment, type PreparedPayment, readPending, writePending } from './pendingPayment.ts'
import { PaymentFailure } from './VaultErrorNotice.tsx'

type PayCardProps = {
  vault: Vault
  /** Called after a signature or a new block. */
  onChanged: () => void
  onSessionLost: () => void
}

const HOUR_MS = 3_600_000

/** The payment form of a vault: enter, evaluate the rules, collect approvals, sign, track. */
export function PayCard({ vault, onChanged, onSessionLost }: PayCardProps) {
  const { tokens = [] } = useConfig()
  const { client } = useService()
  const { address, policy } = vault
  const payment = usePayment(address)
  const { session, step, setStep } = payment
  const [validForMs, setValidForMs] = useState(HOUR_MS)

  // Pending payments are stored in the browser. Another tab may have added an approval, removed the payment or replaced it.
  useLayoutEffect(() => {
    const { step } = session.get()
    if (step.name !== 'form' && step.name !== 'pending') return
    const first = toFirstStep(address)
    session.set({ step: first, ...(digestOf(first) === digestOf(step) ? {} : { failure: null }) })
  }, [session, address])

  function fail(caught: unknown) {
    const error = toServiceError(caught)
    if (error.status === 401) onSessionLost()
    if (error.signed !== undefined) payment.noteUnsettled(error.signed)
    session.set({ failure: error })
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
    // A double click arrives before the button is removed.
    if (session.get().step.name !== 'pending') return
    session.set({ step: { name: 'signing' }, failure: null })
    payment.heading.current?.focus()
    const { prepared, approvals } = pending
    try {
      const result = await sendPrepared(client, prepared, approvals)
      writePending(address, undefined)
      payment.forgetUnsettled()
      payment.clear()
      setStep({ name: 'sent', draft: toShownPayment(prepared.content, tokens), result })
      onChanged()
    } catch (caught) {
      const error = toServiceError(caught)
      // Also without a known signature, because the response may be lost. For a different user, a reload would replace this notice.
      if (error.status !== 401 && !isOfEarlierUser(error)) onChanged()
      fail(error)
      // Keeps the payment: signing it again gives the same nonce and signature, so it can't be paid twice.
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
    <PaymentCard
      id="pay-heading"
      title="Pay from this vault"
      payment={payment}
      Failure={PaymentFailure}
      onReview={review}
      onIncluded={onChanged}
      onAgain={goOn}
      fields={
        policy.approvers.length === 0 ? null : (
          <Field
            id="pay-valid"
            label="Approvals expire after"
            value={String(validForMs)}
            onChange={(value) => setValidForMs(Number(value))}
            isLocked={step.name === 'checking'}
          >
            <option value={HOUR_MS}>one hour</option>
            <option value={24 * HOUR_MS}>almost 24 hours</option>
          </Field>
        )
      }
    >
      {step.name === 'pending' ? (
        <PendingView pending={step.pending} onChange={wait} onSend={() => void send(step.pending)} onBack={back} />
      ) : null}
    </PaymentCard>
  )
}

const digestOf = (step: Step) => (step.name === 'pending' ? step.pending.prepared.digest : undefined)

function toFirstStep(address: string): Step {
  const pending = readPending(address)
  return pending === undefined ? { name: 'form' } : { name: 'pending', pending }
}
