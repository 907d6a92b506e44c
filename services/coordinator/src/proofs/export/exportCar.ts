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

/** A user's proofs as a CAR, in parts, from those before that position on. Throws before the first part what can be told in an answer. */
export type ExportProofs = (parameters: {
  userId: string
  before: string | undefined
}) => Promise<AsyncGenerator<Uint8Array<ArrayBuffer>>>

export const EXPORT_VERSION = 'countersign-export/1'

/** A line of the index. `cid` is the receipt's. */
type ExportEntry = Omit<ListedProof, 'id' | 'cid' | 'createdAt'> & {
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
type ExportScope = { next?: string | null; from?: string; to?: string; missing?: number }

/** A block has 256 KiB at most, as all of ours. */
const MAX_ENTRIES = 400
const MAX_PAGES = 2_000

function toEntry({ id: _, cid, createdAt, ...rest }: ListedProof & { cid: string }): ExportEntry {
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

function chunk<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}

/** Proofs that are read together: the largest make megabytes of these. */
const MAX_FOUND = 32
/** Shared blocks that are remembered as written: those of a batch are near each other. */
const MAX_WRITTEN = 10_000

type BlockReader = (proofs: readonly { slug: string; cid: string }[]) => AsyncGenerator<Block>

type BlockReaderDeps = {
  db: Kysely<Tables>
  /** Of a receipt that is neither in the database nor the one that its rows give. The others follow. */
  onMissing(slug: string): void
  /** Unless a test counts them. */
  assemble?: typeof assembleReceipt
}

/**
 * Reads the receipts of proofs with all that they name, each block once; a shared one again only if its uses are far apart. Receipts that
 * left the database are rebuilt, and count only under the CID that was published.
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
    // Making one takes a millisecond of the thread that signs, which comes first.
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

/** Of one file: so many lines of the index are in memory while it is sent. */
const MAX_PROOFS = 20_000
const PAGE = 1_000

type ExportUserDeps = {
  db: Kysely<Tables>
  /** Once for a file that lacks receipts, at its end. */
  onMissing?(count: number): void
}

/**
 * The proofs of a user as a CAR, newest first: the index comes first, and its root is that of the file. The index is made before the first byte;
 * after it, nothing is read before it can be sent. A receipt that cannot be had is left out, which `checkExport` tells: the index has gone before.
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
    // Making one takes some milliseconds of the thread that signs, which comes first.
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
  /** Written under another name until it is whole. One that is there already is refused. */
  path: string
  onProgress?(proofs: number): void
}

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
    const readBlocks = createBlockReader({ db, onMissing: (slug) => missing.add(slug) })
    // In place of the root, which is not known yet.
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
