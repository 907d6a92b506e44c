import type { PinningStore } from '../store/pinning.ts'
import { assembleReceipt, createReleaseAssembler } from './assembleReceipt.ts'
import type { Block } from './ipfs/pinner.ts'

/** The receipt that a proof's rows give today, which may not be the one that was published. Undefined where there is no such proof. */
export type RebuildReceipt = (slug: string) => Promise<Block | undefined>

export function createRebuildReceipt({ findPin }: Pick<PinningStore, 'findPin'>): RebuildReceipt {
  const toReleaseBlocks = createReleaseAssembler()
  return async (slug) => {
    const work = await findPin(slug)
    return work && assembleReceipt(work, toReleaseBlocks).receipt
  }
}
