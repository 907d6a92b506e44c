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
  /** Called after a signature or a new block, to reload balance and history. */
  onChanged: () => void
  /** The session has expired. */
  onSessionLost: () => void
}

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
    // A double click arrives before the button is removed.
    if (session.get().step.name !== 'confirm') return
    session.set({ step: { name: 'signing' }, failure: null })
    // The focused button is about to be removed.
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
      // Also without a known signature, because the response may be lost. For a different user, a reload would replace this notice.
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
