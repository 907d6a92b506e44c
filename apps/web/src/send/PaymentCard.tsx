import type { ServiceError } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { Link } from '../router.tsx'
import { SendForm } from './SendForm.tsx'
import { SendResult, SendSteps, TransactionHash, UnsettledNotice } from './SendResult.tsx'
import { signingSteps } from './sendSteps.ts'
import type { PaymentOf } from './usePayment.ts'

export type PaymentCardProps = {
  id: string
  title: string
  payment: PaymentOf
  Failure: (props: { error: ServiceError | null; children?: ReactNode }) => ReactNode
  /** Additional form fields. */
  fields?: ReactNode
  onReview: () => void
  onIncluded: () => void
  onAgain: () => void
  /** Shown between the form and signing. */
  children: ReactNode
}

/** The payment form of a wallet or vault: enter, review, sign, track. */
export function PaymentCard(props: PaymentCardProps) {
  const { id, title, payment, Failure, fields, onReview, onIncluded, onAgain, children } = props
  const { step, failure, shown, forgetUnsettled, heading } = payment
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id} ref={heading} tabIndex={-1}>
        {title}
      </h2>
      <Failure error={failure}>
        {failure?.signed === undefined ? null : (
          <>
            <TransactionHash txHash={failure.signed.txHash} />
            <Link to={`/proof/${failure.signed.attestationSlug}`}>View proof</Link>
          </>
        )}
      </Failure>
      {shown === null ? null : <UnsettledNotice signed={shown} onDismiss={forgetUnsettled} />}
      {step.name === 'form' || step.name === 'checking' ? (
        <SendForm {...payment.props} onReview={onReview}>
          {fields}
        </SendForm>
      ) : null}
      {children}
      {step.name === 'signing' ? <SendSteps steps={signingSteps} /> : null}
      {step.name === 'sent' ? (
        <SendResult draft={step.draft} result={step.result} onIncluded={onIncluded} onAgain={onAgain} />
      ) : null}
    </section>
  )
}
