import { toCanonicalJson } from '@countersign/protocol'
import { toBlock } from '../../publish/assembleReceipt.ts'
import type { Block } from '../../publish/ipfs/pinner.ts'
import type { ListedProof } from '../../store/proofs.ts'

export const EXPORT_VERSION = 'countersign-export/1'

/** A line of the index. `cid` is the receipt's. */
export type ExportEntry = Omit<ListedProof, 'id' | 'cid' | 'createdAt'> & {
  cid: string
  createdAt: string
  /** The receipt could not be had when the file was written, and is not in it. */
  missing?: true
}

/** A block of the index: entries, or the CIDs of such blocks. */
type ExportPage = { version: typeof EXPORT_VERSION } & (
  | { proofs: readonly ExportEntry[] }
  | ({ pages: readonly string[]; count: number } & ExportScope)
)

/** What the root says beside its pages: where a user's next file begins, or the range of an audit and how many receipts are missing. */
export type ExportScope = { next?: string | null; from?: string; to?: string; missing?: number }

/** A block has 256 KiB at most, as all of ours. */
export const MAX_ENTRIES = 400
const MAX_PAGES = 2_000

export function toEntry({ id: _, cid, createdAt, ...rest }: ListedProof & { cid: string }): ExportEntry {
  return { ...rest, cid, createdAt: new Date(createdAt).toISOString() }
}

export const toPageBlock = (proofs: readonly ExportEntry[]): Block => toIndexBlock({ version: EXPORT_VERSION, proofs })

/** The blocks above the pages, each after those that it names: the root is the last. */
export function toTreeBlocks(pages: readonly string[], { count, ...scope }: ExportScope & { count: number }): Block[] {
  const blocks: Block[] = []
  let level = pages
  while (level.length > MAX_PAGES) {
    const above = chunk(level, MAX_PAGES).map((some) =>
      toIndexBlock({ version: EXPORT_VERSION, pages: some, count: some.length }),
    )
    blocks.push(...above)
    level = above.map(({ cid }) => cid)
  }
  return [...blocks, toIndexBlock({ version: EXPORT_VERSION, pages: level, count, ...scope })]
}

function toIndexBlock(page: ExportPage): Block {
  return toBlock(new Uint8Array(toCanonicalJson(page)))
}

export function chunk<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}
