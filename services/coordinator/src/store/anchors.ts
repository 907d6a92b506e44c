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
export type DueLogged = AttestationPublished & { slug: string; index: number }

/** A log with due proofs. */
export type DueLog = {
  id: number
  /** SHA-256 of the origin, in hex. */
  hash: string
  origin: string
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

type Deps = { db: Kysely<Tables>; fetchNodes: FetchNodes }

/** The most proofs in one anchor. The next one is sent as soon as so many wait. */
export const MAX_ANCHORED = 10_000
/** Entries that are read at a time. */
const ENTRIES_OF_READ = 8_192

/** Reads for anchors. */
export function createAnchorStore({ db }: { db: Kysely<Tables> }) {
  const deps = { db, fetchNodes: createNodeReader(db) }
  return {
    ...bind(db, { countDue, findDueLogs, findNewestAnchor }),
    ...bind(deps, { findAnchorSource, computeRoot, proveConsistency, proveInclusion }),
  }
}

export type AnchorStore = ReturnType<typeof createAnchorStore>

/** Counts due proofs, up to the number for one anchor. `since` is when the first was pinned. */
async function countDue(db: Kysely<Tables>): Promise<{ count: number; since: number | undefined }> {
  const { rows } = await sql<{ count: string; since: Date | null }>`
    select count(*), min(pinned_at) as since from (
      select pinned_at from proofs where status = 'pending_onchain' and publication_id is null
      order by pinned_at limit ${MAX_ANCHORED}
    ) as due`.execute(db)
  const [row] = rows
  return { count: Number(row?.count ?? 0), since: row?.since?.getTime() }
}

type DueRow = { slug: string; log_index: string; log_id: number; hash: Uint8Array; origin: string } & Parameters<
  typeof toPublished
>[0]

/** The first due proofs that have a log entry, by log. */
async function findDueLogs(db: Kysely<Tables>): Promise<DueLog[]> {
  const { rows } = await sql<DueRow>`
    select a.slug, a.ipfs_cid, p.tx_hash, p.log_index, w.address, l.id as log_id, l.hash, l.origin
    from proofs as a
    join lateral (
      select tx_hash, log_index, wallet_id, verification_id from signings where id = a.signing_id offset 0
    ) as p on p.log_index is not null
    join lateral (select address from wallets where id = p.wallet_id offset 0) as w on true
    join lateral (select log_note from verifications where id = p.verification_id offset 0) as v on true
    join lateral (select log_id from log_notes where hash = v.log_note offset 0) as n on true
    join logs as l on l.id = n.log_id
    where a.status = 'pending_onchain' and a.publication_id is null
    order by a.pinned_at, a.signing_id limit ${MAX_ANCHORED}`.execute(db)
  const logs = new Map<number, DueLog>()
  for (const row of rows) {
    const { log_id: id, hash, origin, slug, log_index } = row
    const log = logs.get(id) ?? { id, hash: toHex(hash), origin, proofs: [] }
    log.proofs.push({ slug, index: Number(log_index), ...toPublished(row) })
    logs.set(id, log)
  }
  return [...logs.values()]
}

/** The size of the newest anchor of a log that is on the chain or may get there. */
async function findNewestAnchor(db: Kysely<Tables>, logId: number): Promise<number> {
  const { rows } = await sql<{ size: string }>`
    select a.size from anchors as a join publications as p on p.id = a.publication_id
    where a.log_id = ${logId}::integer and p.status in ('pending', 'confirmed', 'final')
    order by a.size desc limit 1`.execute(db)
  return Number(rows[0]?.size ?? 0)
}

/**
 * The first cosigned checkpoint that covers the due proofs of a log, with the entries from `from` on. A later one would also cover proofs that
 * aren't pinned yet. If it has too many entries, the newest one that doesn't. Undefined if none is above `from`.
 */
async function findAnchorSource(
  { db, fetchNodes }: Deps,
  { log, from, upTo }: { log: DueLog; from: number; upTo: number },
): Promise<AnchorSource | undefined> {
  const last = Math.max(from, ...log.proofs.map(({ index }) => index))
  const find = async (above: number, order: 'asc' | 'desc') => {
    const { rows } = await sql<{ size: string; note: string }>`
      select size, note from log_notes where log_id = ${log.id}::integer and size > ${above}::bigint and size <= ${upTo}::bigint
      order by size ${sql.raw(order)}, created_at desc limit 1`.execute(db)
    return rows[0]
  }
  const row = (await find(last, 'asc')) ?? (await find(from, 'desc'))
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

/** The root of the log's tree of that size. */
async function computeRoot({ fetchNodes }: Deps, { hash, size }: { hash: string; size: number }): Promise<Uint8Array> {
  return computeTreeRoot(await fetchNodes(hash, listTreeNodes(size)), size)
}

async function proveConsistency(
  { fetchNodes }: Deps,
  { hash, ...sizes }: { hash: string; oldSize: number; size: number },
): Promise<Uint8Array[]> {
  return createConsistencyProof(await fetchNodes(hash, listConsistencyNodes(sizes)), sizes)
}

/** The path of an entry, in hex. */
async function proveInclusion(
  { fetchNodes }: Pick<Deps, 'fetchNodes'>,
  { hash, ...place }: { hash: string; index: number; size: number },
): Promise<string[]> {
  return createInclusionProof(await fetchNodes(hash, listInclusionNodes(place)), place).map(toHex)
}

/** Stores the anchor of a new publication. Returns false if another anchor of the log may still get on the chain after `head`. */
export async function insertAnchor(
  db: Kysely<Tables>,
  { publicationId, anchor, head }: { publicationId: number; anchor: PublishedAnchor; head: number },
): Promise<boolean> {
  const { logId, id, size, block } = anchor
  await sql`select pg_advisory_xact_lock(${ANCHOR_LOCK}::integer, ${logId}::integer)`.execute(db)
  if ((await findNewestAnchor(db, logId)) > head) return false
  await sql`insert into anchors (publication_id, log_id, id, size, block)
    values (${publicationId}::bigint, ${logId}::integer, ${toBytes(id)}, ${size}::bigint, ${toBytes(block)})`.execute(
    db,
  )
  return true
}

/** An arbitrary number, different from those of other locks. */
const ANCHOR_LOCK = 0x6c_6f_67_03

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
  const place = { index: Number(row.log_index), size: Number(row.anchor_size) }
  return {
    chainId: Number(row.onchain_chain_id),
    contract: toPrefixedHex(row.onchain_contract ?? new Uint8Array()),
    id: toPrefixedHex(row.anchor_id),
    ...place,
    path: await proveInclusion({ fetchNodes }, { hash: toHex(row.anchor_log), ...place }),
    txHash,
    blockNumber,
  }
}
