import type { PinningStore } from '../store/pinning.ts'
import type { Clock } from '../system.ts'
import { toBlock } from './assembleReceipt.ts'
import { untilAborted } from './ipfs/pinError.ts'
import type { Pinner } from './ipfs/pinner.ts'
import { pinBlock } from './pinBlock.ts'

export type PinPolicyDeps = {
  store: Pick<PinningStore, 'findPolicy' | 'completePolicy'>
  pinner: Pick<Pinner, 'pin' | 'read'>
  clock: Clock
}

const TIMEOUT_MS = 30_000

/**
 * Puts the policy of a vault on IPFS, so that the vault's address may be shown. What it throws makes the job queue try again, and
 * the sweep once that gives up.
 */
export async function pinPolicy({ store, pinner, clock }: PinPolicyDeps, hash: string): Promise<'pinned' | 'skipped'> {
  const bytes = await store.findPolicy(hash)
  if (bytes === undefined) return 'skipped'
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  await untilAborted(signal, () => pinBlock(pinner, toBlock(bytes), signal))
  await store.completePolicy({ hash, now: clock.now() })
  return 'pinned'
}
