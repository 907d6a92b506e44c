import type { Hex, TransactionSummary } from '@countersign/sdk'
import { useMemo } from 'react'
import type { IncomingFault, Looked } from '../incoming/payment.ts'
import type { IncomingPayments } from '../incoming/useIncoming.ts'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toDateTime } from '../words/format.ts'
import { isPending } from '../words/proofStatus.ts'
import { ReceivedRow, SignedRow } from './HistoryRow.tsx'
import { toEntries } from './pages.ts'
import { useBroadcasts } from './useBroadcasts.ts'
import type { History } from './useHistory.ts'

/** So many proofs are followed live, the newest first. More would only be a load when many wait for the same cause. */
const MAX_FOLLOWED = 6

const NONE: readonly TransactionSummary[] = []

type HistoryCardProps = { address: Hex; history: History; incoming: IncomingPayments }

/** What this wallet has signed, with its proofs, and what it was paid. */
export function HistoryCard({ address, history, incoming }: HistoryCardProps) {
  const { known, isLoading, error, reload, loadOlder, noteStatus } = history
  const transactions = known?.transactions ?? NONE
  const broadcasts = useBroadcasts(transactions, address)
  const followed = new Set(
    transactions
      .filter(({ status }) => isPending(status))
      .slice(0, MAX_FOLLOWED)
      .map(({ slug }) => slug),
  )
  const entries = useMemo(() => (known === null ? [] : toEntries(known, incoming.payments)), [known, incoming.payments])
  return (
    <section className="card" aria-labelledby="history-heading" aria-busy={isLoading}>
      <h2 id="history-heading">History</h2>
      {error === null ? null : (
        <ErrorNotice error={error}>
          <button type="button" className="button button-small" onClick={reload}>
            Read the history again
          </button>
        </ErrorNotice>
      )}
      {known !== null && known.nextCursor === null && entries.length === 0 ? (
        <p className="empty">
          Nothing signed or received yet. What you send or sign appears here, each with its proof.
        </p>
      ) : null}
      {entries.length === 0 ? null : (
        <ul className="history">
          {entries.map((entry) =>
            'signed' in entry ? (
              <SignedRow
                key={entry.key}
                transaction={entry.signed}
                from={address}
                broadcast={broadcasts.get(entry.signed.slug)}
                isFollowed={followed.has(entry.signed.slug)}
                onStatus={noteStatus}
              />
            ) : (
              <ReceivedRow key={entry.key} payment={entry.received} />
            ),
          )}
        </ul>
      )}
      {isLoading && (known === null || known.nextCursor !== null) ? <HistorySkeleton /> : null}
      {known?.nextCursor ? (
        <button type="button" className="button button-quiet" onClick={loadOlder} aria-disabled={isLoading}>
          Show older
        </button>
      ) : null}
      {known === null ? null : <IncomingNote incoming={incoming} />}
    </section>
  )
}

function HistorySkeleton() {
  return (
    <div role="status">
      <span className="visually-hidden">Reading the history</span>
      <div className="skeleton skeleton-row" />
      <div className="skeleton skeleton-row" />
      <div className="skeleton skeleton-row" />
    </div>
  )
}

/** Which blocks were looked at for payments to the wallet: a chain has no list of them. */
function IncomingNote({ incoming }: { incoming: IncomingPayments }) {
  const { ether, tokens, retry } = incoming
  const hasFault = typeof ether === 'string' || typeof tokens === 'string'
  const isOne = tokens === null || sentenceOf(ether) === sentenceOf(tokens)
  return (
    <div className="fine-print incoming-note">
      <p>
        {isOne ? 'Payments to you: ' : 'ETH paid to you: '}
        {sentenceOf(ether)}
      </p>
      {isOne ? null : <p>Tokens paid to you: {sentenceOf(tokens)}</p>}
      {hasFault ? (
        <button type="button" className="button button-small" onClick={retry}>
          Look again
        </button>
      ) : null}
    </div>
  )
}

const FAULTS: Record<IncomingFault, string> = {
  refused: 'the node does not answer questions about past blocks, so they are not shown.',
  unreachable: 'the node does not answer, so some may be missing.',
}

function sentenceOf(looked: Looked | IncomingFault | null): string {
  if (looked === null) return 'looking at the latest blocks.'
  if (typeof looked === 'string') return FAULTS[looked]
  const { fromBlock, since } = looked
  if (fromBlock === 0n) return 'all blocks of this chain were looked at.'
  return `blocks after ${fromBlock} were looked at, since ${toDateTime(since)}.`
}
