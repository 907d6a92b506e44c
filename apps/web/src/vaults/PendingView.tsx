import type { Approval } from '@countersign/policy'
import { useEffect, useRef } from 'react'
import { useConfig } from '../config.ts'
import { tellAmount } from '../send/tellDraft.ts'
import { toDateTime } from '../words/format.ts'
import { withApproval } from './approvalText.ts'
import { ElsewhereApproval } from './ElsewhereApproval.tsx'
import { PaymentFacts } from './PaymentFacts.tsx'
import type { PendingPayment } from './pendingPayment.ts'
import { toShownPayment } from './shownPayment.ts'
import { useApprove } from './useApprove.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

export type PendingViewProps = {
  pending: PendingPayment
  onChange: (pending: PendingPayment) => void
  onSend: () => void
  onBack: () => void
}

/** A payment that the rules allow: what it is, who must approve it, and who has. */
export function PendingView({ pending, onChange, onSend, onBack }: PendingViewProps) {
  const { prepared, approvals } = pending
  const config = useConfig()
  const heading = useRef<HTMLHeadingElement>(null)
  const { ask, isAsking, failure } = useApprove(prepared, add)
  useEffect(() => heading.current?.focus(), [])
  const missing = prepared.approvals - approvals.length
  const amount = tellAmount(toShownPayment(prepared.content, config.tokens ?? []))

  function add(approval: Approval) {
    onChange({ prepared, approvals: withApproval(approvals, approval) })
  }

  return (
    <section className="send-confirm" aria-labelledby="pending-heading">
      <h3 id="pending-heading" ref={heading} tabIndex={-1}>
        {missing > 0 ? 'This needs approval' : 'Is this right?'}
      </h3>
      <PaymentFacts content={prepared.content} vault={prepared.address} />
      {prepared.approvals === 0 ? (
        <p>The rules of this vault allow it without approval.</p>
      ) : (
        <p role="status">
          {approvals.length} of {prepared.approvals} {prepared.approvals === 1 ? 'approval' : 'approvals'}. Valid until{' '}
          {toDateTime(new Date(prepared.expiresMs).toISOString())}.
        </p>
      )}
      {failure === null ? null : <VaultErrorNotice error={failure} />}
      {missing > 0 ? (
        <>
          <div className="actions">
            <button type="button" className="button" onClick={ask} aria-disabled={isAsking}>
              {isAsking ? 'Asking for a passkey …' : 'Approve with a passkey'}
            </button>
            <button type="button" className="button button-quiet" onClick={onBack}>
              Change
            </button>
          </div>
          <ElsewhereApproval prepared={prepared} onApproval={add} />
        </>
      ) : (
        <>
          <p className="fine-print">
            Once you confirm, the enclave signs this transaction and its signature becomes public
            {prepared.approvals === 0 ? '' : ', with its approvals'}, on IPFS and on the chain, whether or not the
            transaction is broadcast. It cannot be taken back.
          </p>
          <div className="actions">
            <button type="button" className="button" onClick={onSend}>
              Sign and send {amount}
            </button>
            <button type="button" className="button button-quiet" onClick={onBack}>
              Change
            </button>
          </div>
        </>
      )}
    </section>
  )
}
