import type { Approval } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { type Prepared, parsePrepared } from '@countersign/sdk/vaults'
import { useEffect, useMemo, useRef, useState } from 'react'
import { ContentDetails } from '../sign/ContentDetails.tsx'
import { Button } from '../ui/Button.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { DownloadLink } from '../ui/DownloadLink.tsx'
import { PasteField } from '../ui/PasteField.tsx'
import { toServiceError } from '../words/explainError.ts'
import { toDateTime } from '../words/format.ts'
import { readPreparedText } from './approvalText.ts'
import { VaultPaymentFacts } from './PaymentFacts.tsx'
import { useApprove } from './useApprove.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'
import { VaultRules } from './VaultRules.tsx'

/** `/approve`: shows a vault request, recomputed from its content, and approves it with a passkey. Needs no sign-in. */
export function ApprovePage() {
  const [text, setText] = useState(readFragment)
  useEffect(() => {
    const listen = () => setText(readFragment())
    window.addEventListener('hashchange', listen)
    return () => window.removeEventListener('hashchange', listen)
  }, [])
  const read = useMemo(() => (text === '' ? undefined : readPrepared(text)), [text])

  return (
    <div className="stack">
      <h1>Approval request</h1>
      {read !== undefined && 'error' in read ? <VaultErrorNotice error={read.error} /> : null}
      {read !== undefined && 'prepared' in read ? (
        <ApproveCard key={toKey(read.prepared)} prepared={read.prepared} />
      ) : (
        <section className="card card-narrow" aria-labelledby="ask-heading">
          <h2 id="ask-heading">Open an approval request</h2>
          <PasteField
            id="prepared-text"
            label="Link or file contents"
            action="Open"
            onSubmit={(given) => {
              if (given.trim() === '') return 'Paste the link or the file contents.'
              setText(given)
            }}
          />
        </section>
      )}
    </div>
  )
}

function readFragment(): string {
  return window.location.hash.length > 1 ? window.location.hash : ''
}

function readPrepared(text: string): { prepared: Prepared } | { error: ServiceError } {
  try {
    return { prepared: parsePrepared(readPreparedText(text) ?? '') }
  } catch (error) {
    return { error: toServiceError(error) }
  }
}

/** Everything that an approval covers. A transaction's digest has no sender, so another vault's could be the same. */
function toKey({ address, policyHash, kind, digest, expiresMs }: Prepared): string {
  return [address, policyHash, kind, digest, expiresMs].join()
}

function ApproveCard({ prepared }: { prepared: Prepared }) {
  const { kind, content, address, policy, expiresMs } = prepared
  const heading = useRef<HTMLHeadingElement>(null)
  const [approval, setApproval] = useState<Approval | null>(null)
  const { ask, isAsking, failure } = useApprove(prepared, setApproval)
  useEffect(() => heading.current?.focus(), [])

  return (
    <section className="card card-narrow send-confirm" aria-labelledby="approve-heading">
      <h2 id="approve-heading" ref={heading} tabIndex={-1}>
        {approval === null ? 'Do you approve this?' : 'Approved'}
      </h2>
      {kind === 'transaction' ? (
        <VaultPaymentFacts content={content} vault={address} />
      ) : (
        <ContentDetails shown={{ kind, content } as Parameters<typeof ContentDetails>[0]['shown']} wallet={address} />
      )}
      <p className="fine-print">
        Your approval applies only to this request and expires on {toDateTime(new Date(expiresMs).toISOString())}. It
        becomes public with the proof.
      </p>
      <details className="call-fields">
        <summary>Vault rules</summary>
        <VaultRules policy={policy} />
      </details>
      <VaultErrorNotice error={failure} />
      {approval === null ? (
        <div className="actions">
          <Button onClick={ask} isBusy={isAsking}>
            {isAsking ? 'Waiting for your passkey…' : 'Approve with passkey'}
          </Button>
        </div>
      ) : (
        <ApprovalText approval={approval} />
      )}
    </section>
  )
}

/** The approval isn't secret and is valid only for this request. */
function ApprovalText({ approval }: { approval: Approval }) {
  const text = JSON.stringify(approval)
  const bytes = useMemo(() => new TextEncoder().encode(`${text}\n`), [text])
  return (
    <div className="stack">
      <p role="status">Send this approval to the person who requested it. It’s valid only for this request.</p>
      <details className="call-fields">
        <summary>Show the approval</summary>
        <p className="mono" data-text="approval">
          {text}
        </p>
      </details>
      <div className="actions">
        <CopyButton text={text} what="the approval" />
        <DownloadLink bytes={bytes} name="approval.json">
          Download as file
        </DownloadLink>
      </div>
    </div>
  )
}
