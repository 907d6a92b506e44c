import { type ProofStatus, proofStatuses } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { assembleReceipt } from '../../publish/assembleReceipt.ts'
import { findPins } from '../../store/findPins.ts'
import { type KnownColumns, unpackReceipt } from '../../store/signings.ts'
import type { Tables } from '../../store/tables.ts'
import { toReason } from '../../toReason.ts'

type CheckedProofs = {
  counts: Readonly<Record<ProofStatus, number>>
  /** Receipts whose bytes match their CID. */
  matching: number
  /** Unpinned receipts that can be built from the database. */
  makeable: number
  /** Final proofs whose bytes are only on IPFS. */
  dropped: number
  /** One sentence per fault. */
  faults: string[]
}

/** A proof in a list, with the CID of its receipt if it is pinned. */
export type ListedProof = { slug: string; cid: string | undefined }

const PAGE = 200
const ORPHANS_PAGE = 1_000
const MAX_ORPHANS = 20

type Row = Awaited<ReturnType<typeof readPage>>[number]

/**
 * Checks that a database has everything that its proofs need, for example after a restore. Reads every proof and hashes every receipt.
 * Passes each page of proofs to `onList`. All proofs of the `earlier` list must exist with the same receipt.
 */
export async function checkProofs(
  db: Kysely<Tables>,
  { earlier = [], onList = () => {} }: { earlier?: readonly ListedProof[]; onList?(proofs: ListedProof[]): void } = {},
): Promise<CheckedProofs> {
  const counts = Object.fromEntries(proofStatuses.map((status) => [status, 0])) as Record<ProofStatus, number>
  const result: CheckedProofs = { counts, matching: 0, makeable: 0, dropped: 0, faults: [] }
  const expected = new Map(earlier.map(({ slug, cid }) => [slug, cid]))
  let after = '0'
  for (;;) {
    const rows = await readPage(db, after)
    const last = rows.at(-1)
    if (last === undefined) break
    after = String(last.id)
    for (const row of rows) {
      counts[row.status] += 1
      checkRow(row, result)
      const cid = expected.get(row.slug)
      expected.delete(row.slug)
      if (cid !== undefined && cid !== row.cid) {
        result.faults.push(`${row.slug}: its receipt was ${cid}, but is now ${row.cid ?? 'not pinned'}`)
      }
    }
    const unpinned = rows.filter(({ status, bytes }) => status === 'pending_pin' && bytes === null)
    await checkMakeable(
      db,
      unpinned.map(({ slug }) => slug),
      result,
    )
    onList(rows.map(({ slug, cid }) => ({ slug, cid: cid ?? undefined })))
  }
  for (const slug of expected.keys()) result.faults.push(`${slug} is missing`)
  result.faults.push(...(await findOrphans(db)))
  return result
}

function readPage(db: Kysely<Tables>, after: string) {
  return db
    .selectFrom('proofs as a')
    .leftJoin('publications as p', 'p.id', 'a.publication_id')
    .leftJoin('receipts as r', 'r.signing_id', 'a.signing_id')
    .leftJoin('signings as s', 's.id', 'a.signing_id')
    .where('a.signing_id', '>', after)
    .orderBy('a.signing_id')
    .limit(PAGE)
    .select(['a.signing_id as id', 'a.slug', 'a.status', 'r.bytes', 'a.ipfs_cid as cid'])
    .select(['a.receipt_dropped as dropped', 'p.status as publication'])
    .select(['s.tx_hash', 's.digest', 's.signature', 's.facts'])
    .execute()
}

function checkRow(row: Row, result: CheckedProofs) {
  const { slug, status, bytes, dropped, cid, publication, tx_hash, facts } = row
  const isPublished = publication === 'confirmed' || publication === 'final'
  if (status === 'complete' && !isPublished) result.faults.push(`${slug} is complete, but its publication isn't`)
  const isSigned = tx_hash !== null && facts !== null
  if (!isSigned) result.faults.push(`${slug}: its signing is missing`)
  if (cid === null || !isSigned) return
  if (bytes !== null) {
    if (isReceiptOf(cid, bytes, { ...row, tx_hash, facts })) result.matching += 1
    else result.faults.push(`${slug}: the bytes of its receipt are not those of ${cid}`)
  } else if (dropped !== null) result.dropped += 1
  else result.faults.push(`${slug}: the bytes of its receipt are missing`)
}

function isReceiptOf(cid: string, bytes: Uint8Array, signing: KnownColumns): boolean {
  try {
    return toCid(unpackReceipt(bytes, signing)) === cid
  } catch {
    return false
  }
}

/** Finds receipts whose shared data is missing. Not every shared table has a foreign key. */
async function checkMakeable(db: Kysely<Tables>, slugs: readonly string[], result: CheckedProofs) {
  try {
    for (const work of await findPins(db, slugs)) if (work !== undefined) assembleReceipt(work)
    result.makeable += slugs.length
  } catch (error) {
    const { code, reason = code } = toReason(error)
    if (slugs.length === 1) result.faults.push(`${slugs[0]}: its receipt can't be built: ${reason}`)
    // Retries one at a time to find the faulty one.
    else for (const slug of slugs) await checkMakeable(db, [slug], result)
  }
}

/** Returns the first signatures without a proof. Reads pages, because one statement over all rows would time out. */
async function findOrphans(db: Kysely<Tables>): Promise<string[]> {
  const orphans: string[] = []
  let after = '0'
  while (orphans.length < MAX_ORPHANS) {
    const { rows } = await sql<{ id: string; isOrphan: boolean }>`
      select p.id, not exists (select from proofs as a where a.signing_id = p.id) as "isOrphan"
      from signings as p where p.id > ${after} order by p.id limit ${ORPHANS_PAGE}`.execute(db)
    const last = rows.at(-1)
    if (last === undefined) break
    after = String(last.id)
    orphans.push(...rows.flatMap(({ id, isOrphan }) => (isOrphan ? [`signature ${id} has no proof`] : [])))
  }
  return orphans.slice(0, MAX_ORPHANS)
}

/** One line for each proof. */
export function formatList(proofs: readonly ListedProof[]): string {
  return proofs.map(({ slug, cid = '-' }) => `${slug} ${cid}\n`).join('')
}

/** Throws on any line that `formatList` can't write. */
export function parseList(text: string): ListedProof[] {
  const lines = text.split('\n')
  if (lines.pop() !== '') throw new Error('the list has an incomplete last line')
  return lines.map((line, index) => {
    const [, slug = '', cid = ''] = /^([\w-]{22}) (-|[a-z0-9]+)$/.exec(line) ?? []
    if (slug === '') throw new Error(`the list has an invalid line ${index + 1}`)
    return { slug, cid: cid === '-' ? undefined : cid }
  })
}
