import type { SignItem, SignItemError, SignItemResult, SignTransactionsResponse } from '@countersign/protocol'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Batcher, Placement } from './batch.ts'
import type { SignedItem } from './signItem.ts'

/**
 * Signs the items of one call on arrival; then they wait for a quote together, so that a call needs one quote and not several.
 * A refused item does not fail the others.
 */
export async function signTransactions(
  { keyWorker, batcher }: { keyWorker: KeyWorker; batcher: Batcher },
  { items, coordinatorKey }: { items: readonly SignItem[]; coordinatorKey: string },
): Promise<SignTransactionsResponse> {
  const outcomes = await Promise.all(items.map((item) => keyWorker.sign(item, coordinatorKey)))
  const placed = await place(batcher, outcomes)
  const batches = [...new Set([...placed.values()].map(({ batch }) => batch))]
  const results = outcomes.map((outcome): SignItemResult => {
    if ('error' in outcome) return outcome
    const placement = placed.get(outcome)
    if (placement === undefined) return { error: 'quote_unavailable' }
    return { statement: outcome.statement, batch: batches.indexOf(placement.batch), leafIndex: placement.leafIndex }
  })
  return { batches, results }
}

/** The items that a quote covers, and where. */
async function place(batcher: Batcher, outcomes: readonly (SignedItem | SignItemError)[]) {
  const signed = outcomes.filter((outcome): outcome is SignedItem => !('error' in outcome))
  const settled = await Promise.allSettled(signed.map(({ leaf }) => batcher.add(leaf)))
  const placed = new Map<SignedItem, Placement>()
  for (const [index, outcome] of settled.entries()) {
    const item = signed[index]
    if (item !== undefined && outcome.status === 'fulfilled') placed.set(item, outcome.value)
  }
  return placed
}
