import type { TcbStatus } from '@countersign/attestation'
import { createInclusionProof, listInclusionNodes, type ReadNode, type TlogProof } from '@countersign/log'
import {
  type Approval,
  type BatchBlock,
  createInclusionPaths,
  type EnclaveConfig,
  type EntropyWitness,
  HASH_BYTES,
  hashSubject,
  hashWitness,
  type ProofStatus,
  type Signed,
  type Statement,
  type StatementV2,
  type TxMetadata,
  toHex,
} from '@countersign/protocol'
import type { AttestationRecords, ReceiptRecords } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { createNodeReader, type FetchNodes } from './logTiles.ts'
import { unpackFacts, unpackReceipt } from './signings.ts'
import type { Tables } from './tables.ts'
import { idsOf, splitBytes, toOwnBytes } from './values.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The records and signatures of a coordinator's release. Proofs with the same release share the object. */
export type ReleaseRecords = {
  batch: Omit<BatchBlock, 'version'>
  /** The collateral used to verify the quote. */
  collateral: Bytes
  /** The bytes of the coordinator's block. */
  coordinator: Bytes
  signatures: { ed25519: Bytes; mlDsa65: Bytes }
}

/** All content of a receipt, except CIDs, which follow from the bytes. */
export type PinRecords =
  | ({ version: 1 } & Omit<ReceiptRecords, 'batch'> & {
        batch: Omit<ReceiptRecords['batch'], 'collateral'>
        /** The collateral used to verify the quote. */
        collateral: Bytes
      })
  | ({ version: 2 } & Pick<AttestationRecords, 'signed' | 'statement' | 'inclusion' | 'entropy'> & {
        release: ReleaseRecords
        /** The bytes of a vault's policy, and the approvals. */
        policy?: Bytes
        approvals?: readonly Approval[]
        /** Present if the settings have a log. */
        log?: TlogProof
      })

/** A proof as the pin stage needs it. */
export type PinWork = {
  slug: string
  status: ProofStatus
  records: PinRecords
  /** Stored by an earlier attempt. */
  receiptBytes: Bytes | null
  /** Failed attempts. */
  attempts: number
  createdAt: number
}

/** Returns proofs in the order of the slugs, and undefined for unknown slugs. */
export async function findPins(
  db: Kysely<Tables>,
  slugs: readonly string[],
  fetchNodes: FetchNodes = createNodeReader(db),
): Promise<(PinWork | undefined)[]> {
  const proofs = await readProofs(db, slugs)
  const shared = await readShared(db, proofs)
  const findShared = (proof: ProofRow) => {
    const found = shared.get(toSharedKey(proof))
    if (found === undefined) throw new Error('a proof has no verification')
    return found
  }
  const places = proofs.flatMap((proof) => toLogPlace(proof, findShared(proof)) ?? [])
  const readNodes = await readLogNodes(places, fetchNodes)
  const works = proofs.map((proof): PinWork => {
    const found = findShared(proof)
    return {
      slug: proof.slug,
      status: proof.status,
      records: proof.version === 1 ? toRecordsV1(proof, found) : toRecordsV2(proof, found, readNodes),
      receiptBytes: proof.receipt && unpackReceipt(proof.receipt, proof),
      attempts: proof.pin_attempts,
      createdAt: proof.created_at.getTime(),
    }
  })
  const bySlug = new Map(works.map((work) => [work.slug, work]))
  return slugs.map((slug) => bySlug.get(slug))
}

type ProofRow = Awaited<ReturnType<typeof readProofs>>[number]

function readProofs(db: Kysely<Tables>, slugs: readonly string[]) {
  return (
    db
      .selectFrom('proofs as a')
      .innerJoin('signings as p', 'p.id', 'a.signing_id')
      .innerJoin('wallets as w', 'w.id', 'p.wallet_id')
      .where(sql<boolean>`a.signing_id = any(${idsOf(slugs)})`)
      .select(['a.slug', 'a.status', 'a.pin_attempts', 'a.created_at', 'p.verification_id'])
      .select(['p.version', 'p.kind', 'p.data', 'p.facts', 'p.digest', 'p.signature', 'p.tx_hash', 'p.release'])
      .select(['p.log_index', 'w.policy_hash'])
      // Subqueries make PostgreSQL find rows by key, regardless of its statistics.
      .select([
        sql<Uint8Array | null>`(select bytes from receipts where signing_id = a.signing_id)`.as('receipt'),
        sql<Uint8Array | null>`(select bytes from policies where hash = w.policy_hash)`.as('policy'),
      ])
      .execute()
  )
}

type SharedRow = Awaited<ReturnType<typeof selectShared>>[number]
/** `paths` covers all leaves. */
type Found = { row: SharedRow; paths: string[][]; release: ReleaseRecords | undefined }

/** Reads tens of kilobytes that many proofs share, once for all of them. */
async function readShared(db: Kysely<Tables>, proofs: readonly ProofRow[]): Promise<Map<string, Found>> {
  if (proofs.length === 0) return new Map()
  const asked = [...new Map(proofs.map((proof) => [toSharedKey(proof), proof])).values()]
  const rows = await selectShared(db, asked)
  return new Map(
    rows.map((row) => {
      const paths = createInclusionPaths(splitBytes(row.leaves, HASH_BYTES)).map((path) => path.map(toHex))
      return [`${row.id}/${row.version}`, { row, paths, release: toRelease(row) }]
    }),
  )
}

function toSharedKey({ verification_id: id, version }: ProofRow): string {
  return `${id}/${version}`
}

function selectShared(db: Kysely<Tables>, proofs: readonly ProofRow[]) {
  const ids = proofs.map(({ verification_id: id }) => Number(id))
  const versions = proofs.map(({ version }) => version)
  const asked = sql<{ id: string | number; version: number }>`
    (select * from unnest(${ids}::bigint[], ${versions}::integer[]) as asked (id, version))`
  return (
    db
      .selectFrom(asked.as('asked'))
      .innerJoin('verifications as v', 'v.id', 'asked.id')
      .innerJoin('batches as b', (join) =>
        join.onRef('b.boot_id', '=', 'v.boot_id').onRef('b.sequence', '=', 'v.sequence'),
      )
      // Version 1 only.
      .leftJoin('self_attestations as s', (join) =>
        join.onRef('s.hash', '=', 'v.self_attestation_hash').on('asked.version', '=', 1),
      )
      .leftJoin('releases as r', (join) =>
        join
          .onRef('r.boot_id', '=', 'v.boot_id')
          .onRef('r.sequence', '=', 'v.sequence')
          .onRef('r.coordinator_key', '=', 'v.coordinator_key')
          .on('asked.version', '=', 2),
      )
      .leftJoin('coordinator_blocks as k', 'k.hash', 'r.coordinator_hash')
      // For version 2, use the collateral that the release names. It may come from an earlier signing of the batch.
      .innerJoin('collaterals as c', (join) =>
        join.on('c.hash', '=', sql<Uint8Array>`coalesce(r.collateral_hash, v.collateral_hash)`),
      )
      .leftJoin('log_notes as n', 'n.hash', 'v.log_note')
      .leftJoin('logs as l', 'l.id', 'n.log_id')
      .select(['asked.id', 'asked.version', 'c.bytes as collateral', 's.json'])
      .select(['n.note', 'n.size as log_size', 'l.hash as log_hash', 'l.key as log_key'])
      .select(['r.settings', 'r.ed25519', 'r.ml_dsa_65', 'k.bytes as coordinator', 'b.boot_id', 'b.sequence'])
      .select(['b.previous', 'b.leaves', 'b.quote', 'b.event_log', 'b.mode', 'b.measurement', 'b.config'])
      .select(['v.quote_verified', 'v.tcb_status', 'v.coordinator_mode'])
      .execute()
  )
}

/** Returns undefined without a release: a receipt without both signatures must never be published. */
function toRelease(row: SharedRow): ReleaseRecords | undefined {
  const { settings, coordinator, ed25519, ml_dsa_65: mlDsa65 } = row
  if (settings === null || coordinator === null || ed25519 === null || mlDsa65 === null) return undefined
  return {
    batch: {
      ...toBatch(row),
      settings,
      treeSize: row.leaves.length / HASH_BYTES,
      ...(row.log_key !== null && { logKey: row.log_key }),
    },
    collateral: toOwnBytes(row.collateral),
    coordinator: toOwnBytes(coordinator),
    signatures: { ed25519: toOwnBytes(ed25519), mlDsa65: toOwnBytes(mlDsa65) },
  }
}

/** The signing path wrote values of these types; the schemas of the blocks check them again. */
function toBatch(row: SharedRow) {
  return {
    bootId: toHex(row.boot_id),
    sequence: Number(row.sequence),
    previous: toHex(row.previous),
    quoteHex: toHex(row.quote),
    config: row.config as EnclaveConfig,
    ...(row.event_log === null ? {} : { eventLog: row.event_log }),
  }
}

function toRecordsV1(proof: ProofRow, { row, paths }: Found): PinRecords {
  const { release } = proof
  if (release === null || row.json === null) throw new Error('a row of version 1 is not whole')
  const { subject, witness, leafIndex, ...facts } = unpackFacts(proof)
  const statement = facts.statement as Statement
  return {
    version: 1,
    txMetadata: subject as TxMetadata,
    statement,
    inclusion: { leafIndex, path: paths[leafIndex] ?? [], treeSize: paths.length },
    batch: {
      ...toBatch(row),
      mode: row.mode,
      quoteVerified: row.quote_verified,
      measurement: row.measurement as ReceiptRecords['batch']['measurement'],
      tcbStatus: row.tcb_status as TcbStatus,
    },
    collateral: toOwnBytes(row.collateral),
    coordinator: {
      mode: row.coordinator_mode,
      publicKey: statement.coordinatorKey,
      selfAttestation: JSON.parse(Buffer.from(row.json).toString('utf8')),
      release: toHex(release),
    },
    witness: witness as EntropyWitness,
  }
}

function toRecordsV2(proof: ProofRow, found: Found, readNodes: ReadonlyMap<string, ReadNode>): PinRecords {
  const { paths, release } = found
  if (release === undefined) throw new Error('a row of version 2 is not whole')
  const { subject, witness, leafIndex, approvals, ...facts } = unpackFacts(proof)
  const signed = { kind: proof.kind, subject } as Signed
  const statement = {
    ...(facts.statement as StatementV2),
    subject: toHex(hashSubject(signed.subject)),
    witness: toHex(hashWitness(witness)),
  }
  const policy = statement.policy === null ? null : proof.policy
  if (
    statement.policy !== null &&
    (policy === null || proof.policy_hash === null || toHex(proof.policy_hash) !== statement.policy)
  ) {
    throw new Error('the policy of a vault is missing')
  }
  const place = toLogPlace(proof, found)
  const log = place && createLogProof(place, readNodes.get(place.hash) as ReadNode)
  if (release.batch.settings.log !== null && log === undefined) throw new Error('the place in the log is missing')
  return {
    version: 2,
    signed,
    statement,
    inclusion: { leafIndex, path: paths[leafIndex] ?? [] },
    entropy: witness,
    release,
    ...(policy && { policy: toOwnBytes(policy) }),
    ...(approvals && { approvals }),
    ...(log && { log }),
  }
}

/** The entry of a signature, and the checkpoint that released it. */
type LogPlace = { hash: string; index: number; size: number; note: string }

function toLogPlace({ log_index: index }: ProofRow, { row }: Found): LogPlace | undefined {
  const { note, log_size: size, log_hash: hash } = row
  if (note === null || size === null || hash === null || index === null) return undefined
  return { hash: toHex(hash), index: Number(index), size: Number(size), note }
}

/** Reads the nodes for all proofs of a log together, because proofs of neighbours share most of theirs. */
async function readLogNodes(places: readonly LogPlace[], fetchNodes: FetchNodes): Promise<Map<string, ReadNode>> {
  const read = [...Map.groupBy(places, ({ hash }) => hash)].map(async ([hash, ofLog]) => {
    return [hash, await fetchNodes(hash, ofLog.flatMap(listInclusionNodes))] as const
  })
  return new Map(await Promise.all(read))
}

function createLogProof({ note, ...place }: LogPlace, readNode: ReadNode): TlogProof {
  return { index: place.index, proof: createInclusionProof(readNode, place), checkpoint: note }
}
