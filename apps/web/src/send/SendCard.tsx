import { type ServiceError, useService, type WalletInfo } from '@countersign/sdk'
import { useRef, useSyncExternalStore } from 'react'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { isOfEarlierUser, toServiceError } from '../words/explainError.ts'
import { toChainName } from '../words/format.ts'
import { type Draft, prepareAgain } from './prepareDraft.ts'
import { SendConfirm } from './SendConfirm.tsx'
import { SendForm } from './SendForm.tsx'
import { SendResult, SendSteps, TransactionHash, UnsettledNotice } from './SendResult.tsx'
import { type Step, useSendSession } from './sendSession.ts'
import { signingSteps } from './sendSteps.ts'
import { usePaymentForm } from './usePaymentForm.ts'
import { useUnsettled } from './useUnsettled.ts'

export type SendCardProps = {
  wallet: WalletInfo
  /** Something was signed, or has reached a block: balance and history are no longer what they were. */
  onChanged: () => void
  /** The service no longer knows the session. */
  onSessionLost: () => void
}

/** Write, look again, sign, follow. */
export function SendCard({ wallet, onChanged, onSessionLost }: SendCardProps) {
  const config = useConfig()
  const { client } = useService()
  const from = wallet.address
  const session = useSendSession(from)
  const { step, failure } = useSyncExternalStore(session.subscribe, session.get)
  const { shown, noteUnsettled, forgetUnsettled } = useUnsettled(from)
  const setStep = (next: Step) => session.set({ step: next })
  const setFailure = (next: ServiceError | null) => session.set({ failure: next })
  const heading = useRef<HTMLHeadingElement>(null)
  const payment = usePaymentForm({
    from,
    isChecking: () => session.get().step.name === 'checking',
    onChecking: (isChecking) => setStep({ name: isChecking ? 'checking' : 'form' }),
    onFailure: (error) => setFailure(error === null ? null : toServiceError(error)),
  })

  async function review() {
    const draft = await payment.review()
    if (draft !== undefined) setStep({ name: 'confirm', draft })
  }

  async function confirm(draft: Draft) {
    // Two clicks in one turn come before the button is gone.
    if (session.get().step.name !== 'confirm') return
    session.set({ step: { name: 'signing' }, failure: null })
    // The button that had the focus goes.
    heading.current?.focus()
    try {
      const { to, valueWei, data, gas } = draft
      const again = await prepareAgain(client.publicClient, { from, draft })
      if ('errors' in again) {
        payment.showErrors(again.errors)
        return setStep({ name: 'form' })
      }
      if (again.draft.isDearer) return setStep({ name: 'confirm', draft: again.draft })
      const result = await client.signAndSend({ to, value: valueWei, data, gas }, { wallet })
      payment.clear()
      forgetUnsettled()
      setStep({ name: 'sent', draft, result })
      onChanged()
    } catch (caught) {
      const error = toServiceError(caught)
      if (error.status === 401) onSessionLost()
      // Also where no signature is known of: its answer may have been lost. The page of another user would take the place of the notice.
      else if (!isOfEarlierUser(error)) onChanged()
      if (error.signed !== undefined) noteUnsettled(error.signed)
      session.set({ step: { name: 'form' }, failure: error })
    }
  }

  function back() {
    setStep({ name: 'form' })
    payment.focus()
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
      {shown === null ? null : <UnsettledNotice signed={shown} onLooked={forgetUnsettled} />}
      {step.name === 'form' || step.name === 'checking' ? (
        <SendForm {...payment.props} isChecking={step.name === 'checking'} onReview={review} />
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
