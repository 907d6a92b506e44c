import type { Approval } from '@countersign/policy'
import type { Prepared } from '@countersign/sdk/vaults'
import { type FormEvent, useEffect, useMemo, useRef, useState } from 'react'
import { useConfig } from '../config.ts'
import { tellAmount, toShownPayment } from '../send/tellDraft.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { toDateTime } from '../words/format.ts'
import { parseApproval, toApproveUrl, withApproval } from './approvalText.ts'
import { PastedText } from './PastedText.tsx'
import { PaymentFacts } from './PaymentFacts.tsx'
import type { PendingPayment } from './pendingPayment.ts'
import { useApprove } from './useApprove.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type PendingViewProps = {
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

/** The way of a payment to another device, and of the approval back. */
function ElsewhereApproval(props: { prepared: Prepared; onApproval: (approval: Approval) => void }) {
  const { prepared, onApproval } = props
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)
  const url = useMemo(() => toApproveUrl(prepared, window.location.origin), [prepared])
  const file = useMemo(() => new TextEncoder().encode(`${JSON.stringify(prepared)}\n`), [prepared])

  function submit(event: FormEvent) {
    event.preventDefault()
    const parsed = parseApproval(text, prepared, Date.now())
    if ('fault' in parsed) return setFault(parsed.fault)
    setText('')
    onApproval(parsed.approval)
  }

  return (
    <details className="call-fields">
      <summary>Approve on another device</summary>
      <p>
        Open this link there, on a page of this site. It shows the payment, and gives the approval back as a text.
        Whoever has the link sees the payment, and can do nothing with it without a passkey of the vault.
      </p>
      <div className="actions">
        <a href={url} target="_blank" rel="noreferrer">
          Link to approve
        </a>
        <CopyButton text={url} what="the link to approve" />
        <DownloadLink bytes={file} name="payment-to-approve.json">
          Save as a file
        </DownloadLink>
      </div>
      <form className="vault-form" onSubmit={submit} noValidate>
        <PastedText
          id="approval-text"
          label="The approval that came back"
          {...{ text, fault }}
          onChange={(next) => {
            setText(next)
            setFault(undefined)
          }}
        />
        <p className="actions">
          <button type="submit" className="button button-quiet">
            Add the approval
          </button>
        </p>
      </form>
    </details>
  )
}
