import type { PinningStore } from '../store/pinning.ts'
import { assembleReceipt, createReleaseAssembler } from './assembleReceipt.ts'

/** The CID of the receipt that a proof's rows give today. Undefined where they give none. */
export type MakeCid = (slug: string) => Promise<string | undefined>

export function createMakeCid({ findPin }: Pick<PinningStore, 'findPin'>): MakeCid {
  const toReleaseBlocks = createReleaseAssembler()
  return async (slug) => {
    const work = await findPin(slug)
    return work && assembleReceipt(work, toReleaseBlocks).receipt.cid
  }
}
