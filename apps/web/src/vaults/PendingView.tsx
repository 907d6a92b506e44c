import type { Approval } from '@countersign/policy'
import type { Prepared } from '@countersign/sdk/vaults'
import { useMemo } from 'react'
import { useConfig } from '../config.ts'
import { tellAmount, toShownPayment } from '../send/tellDraft.ts'
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

/** A payment that the rules allow: what it is, who must approve it, and who has. */
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
    title: 'This needs approval',
    action: 'Approve with a passkey',
    doing: isAsking ? 'Asking for a passkey …' : undefined,
    onConfirm: ask,
    footer: <ElsewhereApproval prepared={prepared} onApproval={add} />,
  }
  const sending = {
    title: 'Is this right?',
    action: `Sign and send ${tellAmount(toShownPayment(content, tokens), toCoin(content))}`,
    onConfirm: onSend,
  }
  return (
    // Another step: a click or a key that was meant to approve must not sign.
    <ConfirmStep
      key={missing > 0 ? 'approve' : 'sign'}
      id="pending-heading"
      onChange={onBack}
      {...(missing > 0 ? approving : sending)}
    >
      <VaultPaymentFacts content={content} vault={prepared.address} />
      {prepared.approvals === 0 ? (
        <p>The rules of this vault allow it without approval.</p>
      ) : (
        <p role="status">
          {approvals.length} of {prepared.approvals} {prepared.approvals === 1 ? 'approval' : 'approvals'}. Valid until{' '}
          {toDateTime(new Date(prepared.expiresMs).toISOString())}.
        </p>
      )}
      <VaultErrorNotice error={failure} />
      {missing > 0 ? null : (
        <p className="fine-print">
          Once you confirm, the enclave signs this transaction and its signature becomes public
          {prepared.approvals === 0 ? '' : ', with its approvals'}, on IPFS and on the chain, whether or not the
          transaction is broadcast. It cannot be taken back.
        </p>
      )}
    </ConfirmStep>
  )
}

/** The way of a payment to another device, and of the approval back. */
function ElsewhereApproval(props: { prepared: Prepared; onApproval: (approval: Approval) => void }) {
  const { prepared, onApproval } = props
  const url = useMemo(() => toApproveUrl(prepared, window.location.origin), [prepared])
  const file = useMemo(() => new TextEncoder().encode(`${JSON.stringify(prepared)}\n`), [prepared])

  function take(text: string): string | undefined {
    const parsed = parseApproval(text, prepared, Date.now())
    if ('fault' in parsed) return parsed.fault
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
      <PasteField
        id="approval-text"
        label="The approval that came back"
        action="Add the approval"
        isQuiet
        take={take}
      />
    </details>
  )
}
