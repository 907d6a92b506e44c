import { toCid } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import { assembleReceipt, assembleReleaseBlocks, type ReleaseBlocks, toBlock } from '../pipeline/assembleReceipt.ts'
import type { Block, ReadBlock } from '../ports.ts'
import { findPins, type ReleaseRecords } from '../store/findPins.ts'
import type { Tables } from '../store/tables.ts'
import { chunk } from './exportIndex.ts'

/** Proofs that are read together: the largest make megabytes of these. */
const MAX_FOUND = 32
/** Shared blocks that are remembered as written: those of a batch are near each other. */
const MAX_WRITTEN = 10_000
const TIMEOUT_MS = 10_000

export type BlockSource = {
  /** The receipts of these proofs with all that they name, each block once; a shared one again only if its uses are far apart. */
  read(proofs: readonly { slug: string; cid: string }[]): AsyncGenerator<Block>
}

/** A receipt that is neither in the database, nor the one that its rows give, nor to be had from IPFS. */
export class MissingReceiptError extends Error {
  override name = 'MissingReceiptError'
  constructor(slug: string, cid: string) {
    super(`the receipt of ${slug} is on IPFS alone, as ${cid}, and cannot be made from its rows`)
  }
}

/**
 * The blocks of proofs, from their rows: whatever the rows give counts only under the CID that was published. So receipts that left the
 * database are exported too, and IPFS is asked only for those that today's program would write otherwise.
 */
export function createBlockSource(deps: { db: Kysely<Tables>; readBlock?: ReadBlock | undefined }): BlockSource {
  const written = new Set<string>()
  const releases = new WeakMap<ReleaseRecords, ReleaseBlocks>()

  function isNew({ cid }: Block): boolean {
    if (written.has(cid)) return false
    written.add(cid)
    for (const oldest of written) if (written.size > MAX_WRITTEN) written.delete(oldest)
    return true
  }

  function toReleaseBlocks(records: ReleaseRecords): ReleaseBlocks {
    const blocks = releases.get(records) ?? assembleReleaseBlocks(records)
    releases.set(records, blocks)
    return blocks
  }

  async function readReceipt(slug: string, cid: string): Promise<Block> {
    try {
      if (deps.readBlock === undefined) throw new MissingReceiptError(slug, cid)
      return { cid, bytes: await deps.readBlock(cid, { signal: AbortSignal.timeout(TIMEOUT_MS) }) }
    } catch {
      throw new MissingReceiptError(slug, cid)
    }
  }

  return {
    async *read(proofs) {
      for (const some of chunk(proofs, MAX_FOUND)) {
        const works = await findPins(
          deps.db,
          some.map(({ slug }) => slug),
        )
        for (const [index, { slug, cid }] of some.entries()) {
          const work = works[index]
          if (work === undefined) throw new MissingReceiptError(slug, cid)
          const { receipt, collateral, others } = assembleReceipt(work, toReleaseBlocks)
          const held = work.receiptBytes
          if (receipt.cid === cid) yield receipt
          else yield held !== null && toCid(held) === cid ? toBlock(held) : await readReceipt(slug, cid)
          for (const block of [collateral, ...others]) if (isNew(block)) yield block
        }
      }
    },
  }
}
