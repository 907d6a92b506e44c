import { toDateTime } from '../words/format.ts'
import type { IncomingFault, Looked } from './incomingState.ts'
import type { IncomingPayments } from './useIncoming.ts'

/** Which blocks were looked at for payments to the wallet: a chain has no list of them. */
export function IncomingNote({ incoming }: { incoming: IncomingPayments }) {
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
