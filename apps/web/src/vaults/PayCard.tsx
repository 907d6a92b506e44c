import { useService } from '@countersign/sdk'
import { prepare, sendPrepared, type Vault } from '@countersign/sdk/vaults'
import { useLayoutEffect, useState } from 'react'
import { useConfig } from '../config.ts'
import { PaymentCard } from '../send/PaymentCard.tsx'
import type { Step } from '../send/sendSession.ts'
import { toShownPayment } from '../send/tellDraft.ts'
import { usePayment } from '../send/usePayment.ts'
import { Field } from '../ui/Field.tsx'
import { isOfEarlierUser, toServiceError } from '../words/explainError.ts'
import { PendingView } from './PendingView.tsx'
import { type PendingPayment, type PreparedPayment, readPending, writePending } from './pendingPayment.ts'
import { PaymentFailure } from './VaultErrorNotice.tsx'

type PayCardProps = {
  vault: Vault
  /** Something was signed, or has reached a block. */
  onChanged: () => void
  onSessionLost: () => void
}

const HOUR_MS = 3_600_000

/** Write, hear what the rules say, have it approved, sign, follow. */
export function PayCard({ vault, onChanged, onSessionLost }: PayCardProps) {
  const { tokens = [] } = useConfig()
  const { client } = useService()
  const { address, policy } = vault
  const payment = usePayment(address)
  const { session, step, setStep } = payment
  const [validForMs, setValidForMs] = useState(HOUR_MS)

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
    // Two clicks in one turn come before the button is gone.
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
