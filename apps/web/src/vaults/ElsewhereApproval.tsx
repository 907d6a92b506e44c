import type { Approval } from '@countersign/policy'
import type { Prepared } from '@countersign/sdk/vaults'
import { type FormEvent, useMemo, useState } from 'react'
import { DownloadLink } from '../report/DownloadLink.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { parseApproval, toApproveUrl } from './approvalText.ts'
import { PastedText } from './PastedText.tsx'

/** The way of a payment to another device, and of the approval back. */
export function ElsewhereApproval(props: { prepared: Prepared; onApproval: (approval: Approval) => void }) {
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
