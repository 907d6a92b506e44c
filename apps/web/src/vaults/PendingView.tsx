import type { Approval } from '@countersign/policy'
import type { Prepared } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { useConfig } from '../config.ts'
import { formatPaymentAmount, toShownPayment } from '../send/shownPayment.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { PasteField } from '../ui/PasteField.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { toCoin, toDateTime } from '../words/format.ts'
import { parseApproval, toApproveUrl, withApproval } from './approvalText.ts'
import { VaultPaymentFacts } from './PaymentFacts.tsx'
import type { PendingPayment } from './pendingPayment.ts'
import { useApprove } from './useApprove.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type PendingViewProps = {
  pending: PendingPayment
  onChange: (pending: PendingPayment) => void
  onSend: () => void
  onBack: () => void
}

/** A payment that the rules allow, with its approvals. */
export function PendingView({ pending, onChange, onSend, onBack }: PendingViewProps) {
  const { prepared, approvals } = pending
  const { content } = prepared
  const { tokens = [] } = useConfig()
  const { ask, isAsking, failure } = useApprove(prepared, add)
  const missing = prepared.approvals - approvals.length

  function add(approval: Approval) {
    onChange({ prepared, approvals: withApproval(approvals, approval) })
  }

  const approving = {
    title: 'Approval needed',
    action: 'Approve with passkey',
    doing: isAsking ? 'Waiting for your passkey…' : undefined,
    onConfirm: ask,
    footer: <RemoteApproval prepared={prepared} onApproval={add} />,
  }
  const sending = {
    title: 'Review payment',
    action: `Sign and send ${formatPaymentAmount(toShownPayment(content, tokens), toCoin(content))}`,
    onConfirm: onSend,
  }
  return (
    // Another key: a click meant for approving must not sign.
    <ConfirmStep
      key={missing > 0 ? 'approve' : 'sign'}
      id="pending-heading"
      onChange={onBack}
      {...(missing > 0 ? approving : sending)}
    >
      <VaultPaymentFacts content={content} vault={prepared.address} />
      {prepared.approvals === 0 ? (
        <p>The vault’s rules allow this without approval.</p>
      ) : (
        <p role="status">
          {approvals.length} of {prepared.approvals} {prepared.approvals === 1 ? 'approval' : 'approvals'}. Expires on{' '}
          {toDateTime(new Date(prepared.expiresMs).toISOString())}.
        </p>
      )}
      <VaultErrorNotice error={failure} />
      {missing > 0 ? null : (
        <p className="fine-print">
          When you confirm, the enclave signs this transaction. Its signature{' '}
          {prepared.approvals === 0 ? 'becomes' : 'and approvals become'} public on IPFS and on the chain, even if the
          transaction isn’t sent. You can’t undo this.
        </p>
      )}
    </ConfirmStep>
  )
}

/** Sends a payment to another device and takes its approval back. */
function RemoteApproval(props: { prepared: Prepared; onApproval: (approval: Approval) => void }) {
  const { prepared, onApproval } = props
  const url = useMemo(() => toApproveUrl(prepared, window.location.origin), [prepared])
  const file = useMemo(() => new TextEncoder().encode(`${JSON.stringify(prepared)}\n`), [prepared])

  function submit(text: string): string | undefined {
    const parsed = parseApproval(text, prepared, Date.now())
    if ('fault' in parsed) return parsed.fault
    onApproval(parsed.approval)
  }

  return (
    <details className="call-fields">
      <summary>Approve on another device</summary>
      <p>
        Open this link on the other device. The page shows the payment and returns the approval as text. Anyone with the
        link can see the payment, but only the vault’s passkeys can approve it.
      </p>
      <div className="actions">
        <a href={url} target="_blank" rel="noreferrer">
          Approval link
        </a>
        <CopyButton text={url} what="the approval link" />
        <DownloadLink bytes={file} name="payment-to-approve.json">
          Download as file
        </DownloadLink>
      </div>
      <PasteField id="approval-text" label="Approval text" action="Add approval" isQuiet onSubmit={submit} />
    </details>
  )
}
