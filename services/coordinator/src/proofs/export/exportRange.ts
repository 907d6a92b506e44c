import { encodeCarHeader, encodeCarSection } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import type { Block } from '../../publish/ipfs/pinner.ts'
import { findPosition, type ListedProof, listAfter } from '../../store/proofs.ts'
import type { Tables } from '../../store/tables.ts'
import { createBlockSource } from './createBlockSource.ts'
import { createExportFile } from './exportFile.ts'
import { type ExportEntry, MAX_ENTRIES, toEntry, toPageBlock, toTreeBlocks } from './exportIndex.ts'

export type ExportRangeParameters = {
  /** Milliseconds since 1970; `to` is not included. */
  from: number
  to: number
  /** Written under another name until it is whole. One that is there already is refused. */
  path: string
  onProgress?(proofs: number): void
}

const PAGE = 1_000
/** Ids may have another order than times within so long. */
const MARGIN_MS = 3_600_000

/**
 * The proofs of all users that were signed in a time, as a CAR in the order of signing. The index comes last, since its root is known then; the
 * header, always as long, is written again with it. What is in memory does not grow with the range, but for the CIDs of the index's pages and
 * the receipts that cannot be had, which the index lists as missing.
 */
export async function exportRange(
  { db }: { db: Kysely<Tables> },
  { from, to, path, onProgress }: ExportRangeParameters,
): Promise<{ proofs: number; missing: number; root: string; bytes: number }> {
  const file = await createExportFile(path)
  const appendBlock = ({ cid, bytes }: Block) => file.append(encodeCarSection(cid, bytes))
  const pages: string[] = []
  const appendPage = async (entries: readonly ExportEntry[]) => {
    const page = toPageBlock(entries)
    pages.push(page.cid)
    await appendBlock(page)
  }
  try {
    const missing = new Set<string>()
    const source = createBlockSource({ db, onMissing: (slug) => missing.add(slug) })
    // In place of the root, which is not known yet.
    await file.append(encodeCarHeader(toPageBlock([]).cid))
    let waiting: ExportEntry[] = []
    let count = 0
    for await (const listed of listRange(db, { from, to })) {
      for await (const block of source.read(listed)) await appendBlock(block)
      for (const proof of listed) {
        waiting.push({ ...toEntry(proof), ...(missing.has(proof.slug) && { missing: true }) })
        if (waiting.length < MAX_ENTRIES) continue
        await appendPage(waiting)
        waiting = []
      }
      count += listed.length
      onProgress?.(count)
    }
    if (waiting.length > 0) await appendPage(waiting)
    const scope = { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
    const tree = toTreeBlocks(pages, { count, ...scope, ...(missing.size > 0 && { missing: missing.size }) })
    for (const block of tree) await appendBlock(block)
    const root = tree.at(-1)?.cid ?? ''
    await file.finish(encodeCarHeader(root))
    return { proofs: count, missing: missing.size, root, bytes: file.size }
  } catch (error) {
    await file.discard()
    throw error
  }
}

/** Those that are pinned. */
async function* listRange(db: Kysely<Tables>, { from, to }: { from: number; to: number }) {
  let after = await findPosition(db, from - MARGIN_MS)
  for (;;) {
    const { proofs, last } = await listAfter(db, { after, limit: PAGE })
    if (last === undefined) return
    yield proofs.filter(
      (proof): proof is ListedProof & { cid: string } =>
        proof.cid !== null && proof.createdAt >= from && proof.createdAt < to,
    )
    if (last.createdAt >= to + MARGIN_MS) return
    after = last.id
  }
}
