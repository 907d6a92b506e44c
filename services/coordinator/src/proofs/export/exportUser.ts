import { setImmediate } from 'node:timers/promises'
import { encodeCarHeader, encodeCarSection } from '@countersign/receipt'
import type { Kysely } from 'kysely'
import { toCursor } from '../../accounts/listTransactions.ts'
import type { Block } from '../../publish/ipfs/pinner.ts'
import { listOfUser } from '../../store/proofs.ts'
import type { Tables } from '../../store/tables.ts'
import { createBlockSource } from './createBlockSource.ts'
import { chunk, MAX_ENTRIES, toEntry, toPageBlock, toTreeBlocks } from './exportIndex.ts'

/** A user's proofs as a CAR, in parts, from those before that position on. Throws before the first part what can be told in an answer. */
export type ExportProofs = (parameters: {
  userId: string
  before: string | undefined
}) => Promise<AsyncGenerator<Uint8Array<ArrayBuffer>>>

/** Of one file: so many lines of the index are in memory while it is sent. */
const MAX_PROOFS = 20_000
const PAGE = 1_000

export type ExportUserDeps = {
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
  const source = createBlockSource({
    ...deps,
    onMissing() {
      missing += 1
    },
  })
  for await (const { cid, bytes } of source.read(proofs)) yield encodeCarSection(cid, bytes)
  if (missing > 0) onMissing?.(missing)
}
