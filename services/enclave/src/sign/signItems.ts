import {
  hashAuthorization,
  isDrandWitness,
  ServiceError,
  type SignItem,
  type SignItemError,
  type SignItemResult,
  type SignItemsResponse,
  toHex,
} from '@countersign/protocol'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Time } from '../time/time.ts'
import type { Batcher, Placement } from './batch.ts'
import type { Samples, SampleUse } from './samples.ts'
import type { SignedItem } from './signItem.ts'

export type SignItemsDeps = { keyWorker: KeyWorker; batcher: Batcher; samples: Samples; time: Time }

/**
 * Signs the items of one call on arrival; then they wait for a quote together, so that a call needs one quote and not several.
 * A refused item does not fail the others.
 */
export async function signItems(
  deps: SignItemsDeps,
  { items, coordinatorKey }: { items: readonly SignItem[]; coordinatorKey: string },
): Promise<SignItemsResponse> {
  deps.time.assertKnown()
  const outcomes = await Promise.all(items.map((item) => signWithSample(deps, item, coordinatorKey)))
  const placed = await place(deps.batcher, outcomes)
  const batches = [...new Set([...placed.values()].map(({ batch }) => batch))]
  const results = outcomes.map((outcome): SignItemResult => {
    if ('error' in outcome) return outcome
    const placement = placed.get(outcome)
    if (placement === undefined) return { error: 'quote_unavailable' }
    const { leaf: _, ...signed } = outcome
    return { ...signed, batch: batches.indexOf(placement.batch), leafIndex: placement.leafIndex }
  })
  return { batches, results }
}

/** The sample is kept for the item before anything is signed, whatever becomes of that: a repeated call gets it again. */
async function signWithSample(
  { keyWorker, samples, time }: SignItemsDeps,
  item: SignItem,
  coordinatorKey: string,
): Promise<SignedItem | SignItemError> {
  const use = toSampleUse(item)
  if (use === undefined) return { error: 'invalid_request' }
  // Receipts of version 1 have no place for it, so nobody could check it there.
  const isForVersion1 = item.kind === 'transaction' && item.statementVersion === 1
  if (isForVersion1 && isDrandWitness(item.witness)) return { error: 'entropy_refused' }
  const error = await samples.use(item.witness, use)
  return error === undefined ? keyWorker.sign(item, { coordinatorKey, now: time.now() }) : { error }
}

/** Undefined for an authorization that cannot be hashed. Whether the digest of a transaction is its own is checked where it is signed. */
function toSampleUse(item: SignItem): SampleUse | undefined {
  const { kind, keyId } = item
  if (kind === 'transaction') return { kind, keyId, digest: item.digest }
  if (kind !== 'authorization') return { kind: 'off-chain' }
  try {
    return { kind, keyId, digest: `0x${toHex(hashAuthorization(item.authorization))}` }
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
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
