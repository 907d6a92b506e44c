import { useService, type WalletInfo } from '@countersign/sdk'
import { useCoin } from '../config.ts'
import { ErrorNotice } from '../ui/Notice.tsx'
import { isOfEarlierUser, toServiceError } from '../words/explainError.ts'
import { PaymentCard } from './PaymentCard.tsx'
import { type Draft, prepareAgain } from './prepareDraft.ts'
import { SendConfirm } from './SendConfirm.tsx'
import { usePayment } from './usePayment.ts'

export type SendCardProps = {
  wallet: WalletInfo
  /** Something was signed, or has reached a block: balance and history are no longer what they were. */
  onChanged: () => void
  /** The service no longer knows the session. */
  onSessionLost: () => void
}

/** The payments of the user's own wallet. */
export function SendCard({ wallet, onChanged, onSessionLost }: SendCardProps) {
  const { client } = useService()
  const coin = useCoin()
  const from = wallet.address
  const payment = usePayment(from)
  const { session, step, setStep } = payment

  async function review() {
    const draft = await payment.review()
    if (draft !== undefined) setStep({ name: 'confirm', draft })
  }

  async function confirm(draft: Draft) {
    // Two clicks in one turn come before the button is gone.
    if (session.get().step.name !== 'confirm') return
    session.set({ step: { name: 'signing' }, failure: null })
    // The button that had the focus goes.
    payment.heading.current?.focus()
    try {
      const { to, valueWei, data, gas } = draft
      const again = await prepareAgain(client.publicClient, { from, draft, coin })
      if ('errors' in again) {
        payment.showErrors(again.errors)
        return setStep({ name: 'form' })
      }
      if (again.draft.isDearer) return setStep({ name: 'confirm', draft: again.draft })
      const result = await client.signAndSend({ to, value: valueWei, data, gas }, { wallet })
      payment.clear()
      payment.forgetUnsettled()
      setStep({ name: 'sent', draft, result })
      onChanged()
    } catch (caught) {
      const error = toServiceError(caught)
      if (error.status === 401) onSessionLost()
      // Also where no signature is known of: its answer may have been lost. The page of another user would take the place of the notice.
      else if (!isOfEarlierUser(error)) onChanged()
      if (error.signed !== undefined) payment.noteUnsettled(error.signed)
      session.set({ step: { name: 'form' }, failure: error })
    }
  }

  function back() {
    setStep({ name: 'form' })
    payment.focus()
  }

  return (
    <PaymentCard
      id="send-heading"
      title="Send"
      payment={payment}
      Failure={ErrorNotice}
      onReview={review}
      onIncluded={onChanged}
      onAgain={back}
    >
      {step.name === 'confirm' ? (
        <SendConfirm
          draft={step.draft}
          from={from}
          maxFeePerGas={client.config.maxFeePerGas}
          onConfirm={() => confirm(step.draft)}
          onChange={back}
        />
      ) : null}
    </PaymentCard>
  )
}
