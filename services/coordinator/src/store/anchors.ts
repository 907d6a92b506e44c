import {
  computeTreeRoot,
  createConsistencyProof,
  createInclusionProof,
  type Frontier,
  LOG_ENTRY_BYTES,
  listConsistencyNodes,
  listInclusionNodes,
  listTreeNodes,
} from '@countersign/log'
import { type AttestationPublished, type Hex, type ProofAnchor, toHex, toPrefixedHex } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import { bind } from './databaseError.ts'
import { createNodeReader, type FetchNodes } from './logTiles.ts'
import { PREPARED } from './openDatabase.ts'
import type { Tables } from './tables.ts'
import { toBytes, toPublished } from './values.ts'

/** A pinned proof without a publication, whose signature has a log entry. */
type DueLogged = AttestationPublished & { slug: string; index: number }

/** A log with due proofs. */
export type DueLog = {
  id: number
  /** SHA-256 of the origin, in hex. */
  hash: string
  origin: string
  /** When the first of the proofs was pinned. */
  since: number
  proofs: DueLogged[]
}

/** The checkpoint that a publication publishes. */
export type PublishedAnchor = {
  logId: number
  /** The log in the contract. */
  id: Hex
  size: number
  /** SHA-256 of the anchor block. */
  block: Hex
}

/** A cosigned checkpoint, and the entries and hashes that an anchor from `from` needs. */
export type AnchorSource = {
  note: string
  size: number
  frontier: Frontier
  entries: Uint8Array
}

/** A log in one contract. */
type LogInContract = { chainId: number; contract: Hex; logId: number; id: Hex }

type Deps = { db: Kysely<Tables>; fetchNodes: FetchNodes; maxAnchored: number }

/** The most proofs in one anchor. The next one is sent as soon as so many wait. */
const MAX_ANCHORED = 10_000
/** Entries that are read at a time. */
const ENTRIES_OF_READ = 8_192
/** Paths that are read at a time. */
const PATHS_OF_READ = 200

/** Reads for anchors. */
export function createAnchorStore({ db }: { db: Kysely<Tables> }, { maxAnchored = MAX_ANCHORED } = {}) {
  const deps = { db, fetchNodes: createNodeReader(db), maxAnchored }
  const queries = { countDue, findDueLogs, findNewestAnchor, findAnchorSource, computeRoot }
  return { maxAnchored, ...bind(deps, { ...queries, proveConsistency, proveInclusions }) }
}

export type AnchorStore = ReturnType<typeof createAnchorStore>

/** Counts due proofs, up to the number for one anchor. `since` is when the first was pinned. */
async function countDue({ db, maxAnchored }: Deps): Promise<{ count: number; since: number | undefined }> {
  const { rows } = await sql<{ count: string; since: Date | null }>`
    select count(*), min(pinned_at) as since from (
      select pinned_at from proofs where status = 'pending_onchain' and publication_id is null
      order by pinned_at limit ${maxAnchored}
    ) as due`.execute(db)
  const [row] = rows
  return { count: Number(row?.count ?? 0), since: row?.since?.getTime() }
}

type DueRow = Parameters<typeof toPublished>[0] & {
  slug: string
  pinned_at: Date
  log_index: string
  log_id: number
  hash: Uint8Array
  origin: string
}

/**
 * Returns the oldest due proofs with a log entry, grouped by log. `except` skips logs. The order of signing is nearly that of the log, so
 * proofs beyond the limit mostly come after those that the next checkpoint lists. Sorts first, and reads the other tables only up to the limit.
 */
async function findDueLogs(
  { db, maxAnchored }: Deps,
  { except = [] }: { except?: readonly number[] } = {},
): Promise<DueLog[]> {
  const { rows } = await sql<DueRow>`
    select a.slug, a.ipfs_cid, a.pinned_at, p.tx_hash, p.log_index, w.address, l.id as log_id, l.hash, l.origin
    from (
      select signing_id, slug, ipfs_cid, pinned_at from proofs where status = 'pending_onchain' and publication_id is null
      order by signing_id offset 0
    ) as a
    join lateral (
      select tx_hash, log_index, wallet_id, verification_id from signings where id = a.signing_id offset 0
    ) as p on p.log_index is not null
    join lateral (select address from wallets where id = p.wallet_id offset 0) as w on true
    join lateral (select log_note from verifications where id = p.verification_id offset 0) as v on true
    join lateral (select log_id from log_notes where hash = v.log_note offset 0) as n on true
    join logs as l on l.id = n.log_id
    where l.id <> all (${except}::integer[])
    order by a.signing_id limit ${maxAnchored}`.execute(db)
  const logs = new Map<number, DueLog>()
  for (const row of rows) {
    const { log_id: id, hash, origin, slug, log_index } = row
    const log = logs.get(id) ?? { id, hash: toHex(hash), origin, since: Number.POSITIVE_INFINITY, proofs: [] }
    log.since = Math.min(log.since, row.pinned_at.getTime())
    log.proofs.push({ slug, index: Number(log_index), ...toPublished(row) })
    logs.set(id, log)
  }
  return [...logs.values()]
}

/** The size of the newest anchor of a log that is on the chain or may get there. */
async function findNewestAnchor(
  { db }: Pick<Deps, 'db'>,
  { chainId, contract, logId, id }: LogInContract,
): Promise<number> {
  const { rows } = await sql<{ size: string }>`
    select a.size from anchors as a join publications as p on p.id = a.publication_id
    where a.log_id = ${logId}::integer and a.id = ${toBytes(id)}::bytea and p.status in ('pending', 'confirmed', 'final')
      and p.chain_id = ${chainId}::bigint and p.contract = ${toBytes(contract)}::bytea
    order by a.size desc limit 1`.execute(db)
  return Number(rows[0]?.size ?? 0)
}

/**
 * Returns the first cosigned checkpoint that covers the due proofs of a log, with the entries from `from` on. A later one would also cover
 * proofs that aren't pinned yet. If the first one is beyond `upTo`, returns the newest one up to there. Undefined if none is above `from`.
 *
 * `hasMore`: more proofs are due than `log` has. The checkpoint then leaves some of these out, so that it covers no proof that the anchor
 * doesn't list.
 */
async function findAnchorSource(
  { db, fetchNodes }: Deps,
  { log, from, upTo, hasMore }: { log: DueLog; from: number; upTo: number; hasMore: boolean },
): Promise<AnchorSource | undefined> {
  const indexes = log.proofs.map(({ index }) => index).toSorted((left, right) => left - right)
  const [first = from, last = from] = [indexes[0], indexes.at(-1)]
  const find = async (above: number, most: number, order: 'asc' | 'desc') => {
    const { rows } = await sql<{ size: string; note: string }>`
      select size, note from log_notes
      where log_id = ${log.id}::integer and size > ${Math.max(from, above)}::bigint and size <= ${most}::bigint
      order by size ${sql.raw(order)}, created_at desc limit 1`.execute(db)
    return rows[0]
  }
  const row =
    (hasMore ? await find(first, Math.min(last, upTo), 'desc') : undefined) ??
    (await find(last, upTo, 'asc')) ??
    (await find(from, upTo, 'desc'))
  if (row === undefined) return undefined
  const size = Number(row.size)
  const nodes = listTreeNodes(from)
  const hashes = nodes.map(await fetchNodes(log.hash, nodes))
  const pieces: Uint8Array[] = []
  for (let at = from; at < size; at += ENTRIES_OF_READ) {
    const { rows: read } = await sql<{ entries: Uint8Array | null }>`${sql.raw(PREPARED)}
      select read_log_entries(${log.id}::integer, ${at}::bigint, ${Math.min(ENTRIES_OF_READ, size - at)}::bigint) as entries`.execute(
      db,
    )
    pieces.push(read[0]?.entries ?? new Uint8Array())
  }
  const entries = Buffer.concat(pieces)
  if (entries.length !== LOG_ENTRY_BYTES * (size - from)) throw new Error('a part of the log is not all there')
  return { note: row.note, size, frontier: { size: from, hashes }, entries }
}

/** The root of the log's tree of that size. Undefined if the log has fewer entries. */
async function computeRoot(
  { db, fetchNodes }: Deps,
  { id, hash, size }: Pick<DueLog, 'id' | 'hash'> & { size: number },
): Promise<Uint8Array | undefined> {
  const { rows } =
    await sql`select from log_appends where log_id = ${id}::integer and size >= ${size}::bigint limit 1`.execute(db)
  if (rows.length === 0) return undefined
  return computeTreeRoot(await fetchNodes(hash, listTreeNodes(size)), size)
}

async function proveConsistency(
  { fetchNodes }: Deps,
  { hash, ...sizes }: { hash: string; oldSize: number; size: number },
): Promise<Uint8Array[]> {
  return createConsistencyProof(await fetchNodes(hash, listConsistencyNodes(sizes)), sizes)
}

/** The paths of entries, in hex. */
async function proveInclusions(
  { fetchNodes }: Pick<Deps, 'fetchNodes'>,
  { hash, size, indexes }: { hash: string; size: number; indexes: readonly number[] },
): Promise<Map<number, string[]>> {
  const paths = new Map<number, string[]>()
  for (let start = 0; start < indexes.length; start += PATHS_OF_READ) {
    const places = indexes.slice(start, start + PATHS_OF_READ).map((index) => ({ index, size }))
    const readNode = await fetchNodes(hash, places.flatMap(listInclusionNodes))
    for (const place of places) paths.set(place.index, createInclusionProof(readNode, place).map(toHex))
  }
  return paths
}

/** Stores the anchor of a new publication. Returns false if another anchor of the log may still get on the chain after `head`. */
export async function insertAnchor(
  db: Kysely<Tables>,
  parameters: { publicationId: number; chainId: number; contract: Hex; anchor: PublishedAnchor; head: number },
): Promise<boolean> {
  const { publicationId, chainId, contract, anchor, head } = parameters
  const { logId, id, size, block } = anchor
  await sql`select pg_advisory_xact_lock(${ANCHOR_LOCK}::integer, ${logId}::integer)`.execute(db)
  if ((await findNewestAnchor({ db }, { chainId, contract, logId, id })) > head) return false
  await sql`insert into anchors (publication_id, log_id, id, size, block)
    values (${publicationId}::bigint, ${logId}::integer, ${toBytes(id)}, ${size}::bigint, ${toBytes(block)})`.execute(
    db,
  )
  return true
}

/** An arbitrary number, different from those of other locks. */
const ANCHOR_LOCK = 0x6c_6f_67_04

export type AnchorRow = {
  anchor_id: Uint8Array | null
  anchor_size: string | null
  anchor_log: Uint8Array | null
  log_index: string | null
  onchain_chain_id: string | null
  onchain_contract: Uint8Array | null
}

/** The anchor of a complete proof. Undefined if an event published it. */
export async function readProofAnchor(
  fetchNodes: FetchNodes,
  row: AnchorRow,
  { txHash, blockNumber }: { txHash: Hex | null; blockNumber: number | null },
): Promise<ProofAnchor | undefined> {
  if (row.anchor_id === null || row.anchor_log === null || txHash === null || blockNumber === null) return undefined
  const [index, size] = [Number(row.log_index), Number(row.anchor_size)]
  const paths = await proveInclusions({ fetchNodes }, { hash: toHex(row.anchor_log), size, indexes: [index] })
  return {
    chainId: Number(row.onchain_chain_id),
    contract: toPrefixedHex(row.onchain_contract ?? new Uint8Array()),
    id: toPrefixedHex(row.anchor_id),
    size,
    index,
    path: paths.get(index) ?? [],
    txHash,
    blockNumber,
  }
}
