import { type TransactionSummary, useAttestation } from '@countersign/sdk'
import { useEffect } from 'react'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toAgo, toDateTime, toShortHex } from '../words/format.ts'
import { isPending, proofStatusWords } from '../words/proofStatus.ts'
import type { History } from './useHistory.ts'

/** So many proofs are followed live, the newest first. More would only be a load when many wait for the same cause. */
const MAX_FOLLOWED = 6

/** What this wallet has signed, and how far the proofs are. */
export function HistoryCard({ history }: { history: History }) {
  const { known, isLoading, error, reload, loadOlder, noteStatus } = history
  const transactions = known?.transactions ?? []
  const followed = new Set(
    transactions
      .filter(({ status }) => isPending(status))
      .slice(0, MAX_FOLLOWED)
      .map(({ slug }) => slug),
  )
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
      {known === null && isLoading ? <HistorySkeleton /> : null}
      {known !== null && transactions.length === 0 ? (
        <p className="empty">Nothing signed yet. What you send or sign appears here, each with its proof.</p>
      ) : null}
      {transactions.length === 0 ? null : (
        <ul className="history">
          {transactions.map((transaction) => (
            <HistoryRow
              key={transaction.slug}
              transaction={transaction}
              isFollowed={followed.has(transaction.slug)}
              onStatus={noteStatus}
            />
          ))}
        </ul>
      )}
      {known?.nextCursor ? (
        <button type="button" className="button button-quiet" onClick={loadOlder} aria-disabled={isLoading}>
          {isLoading ? 'Loading …' : 'Show older'}
        </button>
      ) : null}
    </section>
  )
}

type HistoryRowProps = { transaction: TransactionSummary; isFollowed: boolean; onStatus: History['noteStatus'] }

function HistoryRow({ transaction, isFollowed, onStatus }: HistoryRowProps) {
  const { kind, slug, txHash, createdAt, chainId, status } = transaction
  const config = useConfig()
  const { proof } = useAttestation(isFollowed ? slug : null)
  const seen = proof?.status
  useEffect(() => {
    if (seen !== undefined) onStatus(slug, seen)
  }, [slug, seen, onStatus])
  const { label, meaning, tone } = proofStatusWords[status]
  return (
    <li>
      <Link to={`/proof/${slug}`} className="history-row">
        <span className="history-what">
          <HistoryName kind={kind} txHash={txHash} />
          <time dateTime={createdAt} title={toDateTime(createdAt)}>
            {toAgo(createdAt, Date.now())}
            {kind === 'off-chain' || chainId === config.chainId ? null : ` on chain ${chainId}`}
          </time>
        </span>
        <span className={`badge badge-${tone}`} title={meaning} aria-live="polite">
          {label}
        </span>
      </Link>
    </li>
  )
}

/** Of what is signed off the chain only kind and time are known here: the rest is in the opening, which nobody but the signer has. */
function HistoryName({ kind, txHash }: Pick<TransactionSummary, 'kind' | 'txHash'>) {
  if (kind === 'off-chain') return <span>Message or typed data</span>
  return (
    <span className="mono">
      <span className={kind === undefined ? 'visually-hidden' : ''}>
        {kind === undefined ? 'Transaction' : 'Authorization'}{' '}
      </span>
      {toShortHex(txHash)}
    </span>
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
