import type { Hex, TransactionSummary } from '@countersign/sdk'
import { useMemo } from 'react'
import { useCoin } from '../config.ts'
import type { IncomingFault, SearchedRange } from '../incoming/payment.ts'
import type { IncomingPayments } from '../incoming/useIncoming.ts'
import { Button } from '../ui/Button.tsx'
import { ListCard } from '../ui/ListCard.tsx'
import { toDateTime } from '../words/format.ts'
import { isPending } from '../words/proofStatus.ts'
import { ReceivedRow, SignedRow } from './HistoryRow.tsx'
import { toEntries } from './pages.ts'
import { useBroadcasts } from './useBroadcasts.ts'
import type { History } from './useHistory.ts'

/** Polls at most this many pending proofs, newest first, to limit the load. */
const MAX_FOLLOWED = 6

const NONE: readonly TransactionSummary[] = []

type HistoryCardProps = { address: Hex; history: History; incoming: IncomingPayments }

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
  const items = entries.map((entry) =>
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
  )
  const isAll = known !== null && known.nextCursor === null
  return (
    <ListCard
      id="history-heading"
      title="History"
      listClassName="history"
      isLoading={isLoading}
      error={error}
      items={items}
      loading={isLoading && !isAll ? 'Loading history…' : undefined}
      retry={{ label: 'Reload history', onRetry: reload }}
      empty={
        isAll && items.length === 0
          ? 'No activity yet. Payments and signatures appear here with their proofs.'
          : undefined
      }
    >
      {known?.nextCursor ? (
        <Button look="quiet" onClick={loadOlder} isBusy={isLoading}>
          Show older
        </Button>
      ) : null}
      {known === null ? null : <IncomingNote incoming={incoming} />}
    </ListCard>
  )
}

/** States which blocks were searched, because a chain has no list of an address's payments. */
function IncomingNote({ incoming }: { incoming: IncomingPayments }) {
  const { ether, tokens, retry } = incoming
  const coin = useCoin()
  const hasFault = typeof ether === 'string' || typeof tokens === 'string'
  const isOne = tokens === null || describeSearch(ether) === describeSearch(tokens)
  return (
    <div className="fine-print incoming-note">
      <p>
        {isOne ? 'Incoming payments: ' : `Incoming ${coin}: `}
        {describeSearch(ether)}
      </p>
      {isOne ? null : <p>Incoming tokens: {describeSearch(tokens)}</p>}
      {hasFault ? (
        <Button look="small" onClick={retry}>
          Search again
        </Button>
      ) : null}
    </div>
  )
}

const FAULTS: Record<IncomingFault, string> = {
  refused: 'not shown, because the node can’t search past blocks.',
  unreachable: 'some may be missing, because the node isn’t responding.',
}

function describeSearch(searched: SearchedRange | IncomingFault | null): string {
  if (searched === null) return 'searching recent blocks…'
  if (typeof searched === 'string') return FAULTS[searched]
  const { fromBlock, since } = searched
  if (fromBlock === 0n) return 'searched the whole chain.'
  return `searched since ${toDateTime(since)} (block ${fromBlock}).`
}
