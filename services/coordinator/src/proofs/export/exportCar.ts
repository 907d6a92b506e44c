import { setImmediate } from 'node:timers/promises'
import { toCanonicalJson } from '@countersign/protocol'
import { encodeCarHeader, encodeCarSection } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import { toCursor } from '../../accounts/wallet.ts'
import { assembleNamedBlocks, assembleReceipt, createReleaseAssembler, toBlock } from '../../publish/assembleReceipt.ts'
import type { Block } from '../../publish/ipfs/pinner.ts'
import { findPins, type PinWork } from '../../store/findPins.ts'
import { findPosition, type ListedProof, listAfter, listOfUser } from '../../store/proofs.ts'
import type { Tables } from '../../store/tables.ts'
import { createExportFile } from './exportFile.ts'

/** Streams a user's proofs older than `before` as a CAR. If building the index fails, it rejects, so that the route can answer with it. */
export type ExportProofs = (parameters: {
  userId: string
  before: string | undefined
}) => Promise<AsyncGenerator<Uint8Array<ArrayBuffer>>>

export const EXPORT_VERSION = 'countersign-export/1'

/** An entry of the index. `cid` is the receipt's. */
type ExportEntry = Omit<ListedProof, 'id' | 'cid' | 'createdAt'> & {
  cid: string
  createdAt: string
  /** The receipt could not be read when the file was written, so the file lacks it. */
  missing?: true
}

/** A block of the index: entries, or the CIDs of such blocks. */
type ExportPage = { version: typeof EXPORT_VERSION } & (
  | { proofs: readonly ExportEntry[] }
  | ({ pages: readonly string[]; count: number } & ExportScope)
)

/** More members of the root: the cursor of a user's next file, or the range of an audit and the number of missing receipts. */
type ExportScope = { next?: string | null; from?: string; to?: string; missing?: number }

/** Keeps blocks of the index below 256 KiB, our limit for all blocks. */
const MAX_ENTRIES = 400
const MAX_PAGES = 2_000

function toEntry({ id: _, cid, createdAt, ...rest }: ListedProof & { cid: string }): ExportEntry {
  return { ...rest, cid, createdAt: new Date(createdAt).toISOString() }
}

export const toPageBlock = (proofs: readonly ExportEntry[]): Block => toIndexBlock({ version: EXPORT_VERSION, proofs })

/** The blocks above the pages. Each comes after the blocks that it names, so the root is last. */
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

function chunk<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}

/** Proofs to read together. With the largest proofs, this is megabytes. */
const MAX_FOUND = 32
/** How many written shared blocks to remember. Proofs of one batch are close together. */
const MAX_WRITTEN = 10_000

type BlockReader = (proofs: readonly { slug: string; cid: string }[]) => AsyncGenerator<Block>

type BlockReaderDeps = {
  db: Kysely<Tables>
  /** Called for a receipt that is not in the database and cannot be rebuilt under its CID. Reading continues with the next proof. */
  onMissing(slug: string): void
  /** Tests replace it, to count the calls. */
  assemble?: typeof assembleReceipt
}

/**
 * Reads the receipts of proofs and the blocks that they name. A shared block comes once, and again only if its uses are far apart.
 * Receipts that were removed from the database are rebuilt, and accepted only if they have the published CID.
 */
export function createBlockReader(deps: BlockReaderDeps): BlockReader {
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
    // Rebuilding a receipt blocks the signing thread for a millisecond, so let pending work run first.
    await setImmediate()
    try {
      const made = assemble(work, toReleaseBlocks).receipt
      return made.cid === cid ? made : undefined
    } catch {
      return undefined
    }
  }

  return async function* read(proofs) {
    for (const some of chunk(proofs, MAX_FOUND)) {
      const slugs = some.map(({ slug }) => slug)
      const works = await findPins(db, slugs)
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
  }
}

/** Limit per file. The index stays in memory while the file is sent. */
const MAX_PROOFS = 20_000
const PAGE = 1_000

type ExportUserDeps = {
  db: Kysely<Tables>
  /** Called once at the end of a file that lacks receipts. */
  onMissing?(count: number): void
}

/**
 * Streams a user's proofs as a CAR, newest first. The index is built before the first byte and comes first; its root is the file's root.
 * Receipts are read only when they can be sent. The index was sent by then, so it can't mark missing receipts; `checkExport` finds them.
 */
export async function exportUser(
  deps: ExportUserDeps,
  { userId, before, maxProofs = MAX_PROOFS }: { userId: string; before?: string | undefined; maxProofs?: number },
): Promise<AsyncGenerator<Uint8Array<ArrayBuffer>>> {
  const listed = []
  let last = before
  let isOver = false
  while (!isOver && listed.length < maxProofs) {
    const limit = Math.min(PAGE, maxProofs - listed.length)
    const page = await listOfUser(deps.db, { userId, limit, before: last })
    listed.push(...page.proofs)
    isOver = page.last === undefined
    last = page.last?.id ?? last
  }
  const proofs = listed.flatMap((proof) => (proof.cid === null ? [] : [{ ...proof, cid: proof.cid }]))
  const pages: Block[] = []
  for (const some of chunk(proofs, MAX_ENTRIES)) {
    pages.push(toPageBlock(some.map(toEntry)))
    // Building a page blocks the signing thread for some milliseconds, so let pending work run first.
    await setImmediate()
  }
  const next = isOver || last === undefined ? null : toCursor(BigInt(last))
  const tree = toTreeBlocks(
    pages.map(({ cid }) => cid),
    { count: proofs.length, next },
  )
  return write(deps, { index: [...tree.toReversed(), ...pages], proofs })
}

async function* write(
  { onMissing, ...deps }: ExportUserDeps,
  { index, proofs }: { index: readonly Block[]; proofs: readonly { slug: string; cid: string }[] },
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield encodeCarHeader(index[0]?.cid ?? '')
  for (const { cid, bytes } of index) yield encodeCarSection(cid, bytes)
  let missing = 0
  const readBlocks = createBlockReader({
    ...deps,
    onMissing() {
      missing += 1
    },
  })
  for await (const { cid, bytes } of readBlocks(proofs)) yield encodeCarSection(cid, bytes)
  if (missing > 0) onMissing?.(missing)
}

type ExportRangeParameters = {
  /** Milliseconds since 1970; `to` is not included. */
  from: number
  to: number
  /** The file has another name until it is complete. Fails if this path already exists. */
  path: string
  onProgress?(proofs: number): void
}

/** Within this time, the order of ids may differ from the order of times. */
const MARGIN_MS = 3_600_000

/**
 * Writes the proofs of all users from a time range as a CAR, in the order of signing. The index comes last. The header has a fixed length,
 * so it is overwritten at the end, when the root is known. Memory grows only with the CIDs of the index pages and with the missing
 * receipts, which the index marks.
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
    const readBlocks = createBlockReader({ db, onMissing: (slug) => missing.add(slug) })
    // A placeholder: the root is not known yet.
    await file.append(encodeCarHeader(toPageBlock([]).cid))
    let waiting: ExportEntry[] = []
    let count = 0
    for await (const listed of listRange(db, { from, to })) {
      for await (const block of readBlocks(listed)) await appendBlock(block)
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

/** Only pinned proofs. */
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
