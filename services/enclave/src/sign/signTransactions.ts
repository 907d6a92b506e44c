import type { SignItem, SignItemError, SignItemResult, SignTransactionsResponse } from '@countersign/protocol'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Time } from '../time/time.ts'
import type { Batcher, Placement } from './batch.ts'
import type { Samples } from './samples.ts'
import type { SignedItem } from './signItem.ts'

export type SignTransactionsDeps = { keyWorker: KeyWorker; batcher: Batcher; samples: Samples; time: Time }

/**
 * Signs the items of one call on arrival; then they wait for a quote together, so that a call needs one quote and not several.
 * A refused item does not fail the others.
 */
export async function signTransactions(
  deps: SignTransactionsDeps,
  { items, coordinatorKey }: { items: readonly SignItem[]; coordinatorKey: string },
): Promise<SignTransactionsResponse> {
  deps.time.assertKnown()
  const outcomes = await Promise.all(items.map((item) => signWithSample(deps, item, coordinatorKey)))
  const placed = await place(deps.batcher, outcomes)
  const batches = [...new Set([...placed.values()].map(({ batch }) => batch))]
  const results = outcomes.map((outcome): SignItemResult => {
    if ('error' in outcome) return outcome
    const placement = placed.get(outcome)
    if (placement === undefined) return { error: 'quote_unavailable' }
    return { statement: outcome.statement, batch: batches.indexOf(placement.batch), leafIndex: placement.leafIndex }
  })
  return { batches, results }
}

/** The sample is kept for the item before anything is signed, whatever becomes of that: a repeated call gets it again. */
async function signWithSample(
  { keyWorker, samples, time }: SignTransactionsDeps,
  item: SignItem,
  coordinatorKey: string,
): Promise<SignedItem | SignItemError> {
  const error = await samples.use(item.witness, { keyId: item.keyId, kind: 'transaction', digest: item.digest })
  return error === undefined ? keyWorker.sign(item, { coordinatorKey, now: time.now() }) : { error }
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
