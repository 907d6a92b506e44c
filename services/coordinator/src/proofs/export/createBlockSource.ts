import { setImmediate } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { assembleNamedBlocks, assembleReceipt, createReleaseAssembler, toBlock } from '../../publish/assembleReceipt.ts'
import type { Block } from '../../publish/ipfs/pinner.ts'
import { findPins, type PinWork } from '../../store/findPins.ts'
import type { Tables } from '../../store/tables.ts'
import { chunk } from './exportIndex.ts'

/** Proofs that are read together: the largest make megabytes of these. */
const MAX_FOUND = 32
/** Shared blocks that are remembered as written: those of a batch are near each other. */
const MAX_WRITTEN = 10_000

export type BlockSource = {
  /** The receipts of these proofs with all that they name, each block once; a shared one again only if its uses are far apart. */
  read(proofs: readonly { slug: string; cid: string }[]): AsyncGenerator<Block>
}

export type BlockSourceDeps = {
  db: Kysely<Tables>
  /** Of a receipt that is neither in the database nor the one that its rows give. The others follow. */
  onMissing(slug: string): void
  /** Unless a test counts them. */
  assemble?: typeof assembleReceipt
}

/**
 * The blocks of proofs, from their rows: receipts that left the database are rebuilt, and count only under the CID that was published.
 */
export function createBlockSource(deps: BlockSourceDeps): BlockSource {
  const { db, onMissing, assemble = assembleReceipt } = deps
  const written = new Set<string>()
  const toReleaseBlocks = createReleaseAssembler()

  function isNew({ cid }: Block): boolean {
    if (written.has(cid)) return false
    written.add(cid)
    for (const oldest of written) if (written.size > MAX_WRITTEN) written.delete(oldest)
    return true
  }

  async function findReceipt(work: PinWork, cid: string): Promise<Block | undefined> {
    const held = work.receiptBytes && toBlock(work.receiptBytes)
    if (held?.cid === cid) return held
    // Making one takes a millisecond of the thread that signs, which comes first.
    await setImmediate()
    const made = tryAssemble(work)
    return made?.cid === cid ? made : undefined
  }

  function tryAssemble(work: PinWork): Block | undefined {
    try {
      return assemble(work, toReleaseBlocks).receipt
    } catch {
      return undefined
    }
  }

  return {
    async *read(proofs) {
      for (const some of chunk(proofs, MAX_FOUND)) {
        const works = await findPins(
          db,
          some.map(({ slug }) => slug),
        )
        for (const [index, { slug, cid }] of some.entries()) {
          const work = works[index]
          const receipt = work && (await findReceipt(work, cid))
          if (receipt === undefined) onMissing(slug)
          else yield receipt
          if (work === undefined) continue
          const { collateral, others } = assembleNamedBlocks(work, toReleaseBlocks)
          for (const block of [collateral, ...others]) if (isNew(block)) yield block
        }
        await setImmediate()
      }
    },
  }
}
