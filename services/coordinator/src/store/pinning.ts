import type { TcbStatus } from '@countersign/attestation'
import { createInclusionProof, listInclusionNodes, type TlogProof } from '@countersign/log'
import type {
  Approval,
  BatchBlock,
  EnclaveConfig,
  EntropyWitness,
  ProofStatus,
  Signed,
  Statement,
  StatementV2,
} from '@countersign/protocol'
import type { AttestationRecords, ReceiptRecords } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { fromBytes, toBytes } from './bytes.ts'
import { guard } from './databaseError.ts'
import { type Jobs, PIN_QUEUE, PUBLISH_QUEUE } from './jobs.ts'
import { createNodeReader, type FetchNodes } from './logTiles.ts'
import type { Tables } from './tables.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** All that a receipt is made of. CIDs are missing: they follow from the bytes. */
export type PinRecords =
  | ({ version: 1 } & Omit<ReceiptRecords, 'batch'> & { batch: Omit<ReceiptRecords['batch'], 'collateral'> })
  | ({ version: 2 } & Pick<AttestationRecords, 'signed' | 'statement' | 'inclusion' | 'entropy'> & {
        batch: Omit<BatchBlock, 'version'>
        /** The bytes of the coordinator's block. */
        coordinator: Bytes
        signatures: { ed25519: Bytes; mlDsa65: Bytes }
        /** The bytes of a vault's policy, and who approved. */
        policy?: Bytes
        approvals?: readonly Approval[]
        /** Where the settings have a log. */
        log?: TlogProof
      })

/** A proof as the pin stage needs it. */
export type PinWork = {
  slug: string
  status: ProofStatus
  /** All that the receipt is made of. */
  records: PinRecords
  /** What the quote was verified with. */
  collateral: Bytes
  /** Frozen by an earlier attempt. */
  receiptBytes: Bytes | null
  /** Those that failed. */
  attempts: number
  createdAt: number
}

/** What the pin stage reads and writes. Failures of the database itself throw `database_unavailable`. */
export type PinningStore = {
  findPin(slug: string): Promise<PinWork | undefined>
  /** The bytes of a policy that is to be pinned. Undefined where that is done. */
  findPolicy(hash: string): Promise<Bytes | undefined>
  /** The policy's block was read back from where it was pinned. */
  completePolicy(parameters: { hash: string; now: number }): Promise<void>
  /** Keeps these bytes if none were kept before; returns those that are kept. */
  freezeReceipt(parameters: { slug: string; bytes: Uint8Array }): Promise<Bytes>
  /** `pending_pin` → `pending_onchain`, with a job to publish it. False where another worker has moved it before. */
  completePin(parameters: { slug: string; cid: string; now: number }): Promise<boolean>
  /** Counts a failed attempt of a `pending_pin`: with a job for the next one, or without `retryAt` as `pin_failed`. */
  recordPinFailure(parameters: {
    slug: string
    failure: string
    now: number
    retryAt?: number | undefined
  }): Promise<void>
}

export function createPinningStore(deps: {
  db: Kysely<Tables>
  jobs: Jobs
  /** How long a proof that is to be published waits for others. Unset: not at all. */
  publishDelayMs?: number
}): PinningStore {
  const { db, jobs, publishDelayMs = 0 } = deps
  const fetchNodes = createNodeReader(db)
  return {
    findPin: guard((slug) => findPin(db, slug, fetchNodes)),
    findPolicy: guard(async (hash) => {
      const row = await db
        .selectFrom('policies')
        .where('hash', '=', toBytes(hash))
        .where('pinned_at', 'is', null)
        .select('bytes')
        .executeTakeFirst()
      return row && toOwnBytes(row.bytes)
    }),
    completePolicy: guard(async ({ hash, now }) => {
      await db
        .updateTable('policies')
        .set({ pinned_at: new Date(now) })
        .where('hash', '=', toBytes(hash))
        .where('pinned_at', 'is', null)
        .execute()
    }),
    freezeReceipt: guard((parameters) => freezeReceipt(db, parameters)),
    completePin: guard(({ slug, cid, now }) =>
      db.transaction().execute(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable('attestations')
          .set({ status: 'pending_onchain', ipfs_cid: cid, pinned_at: new Date(now), failure: null })
          .where('slug', '=', slug)
          .where('status', '=', 'pending_pin')
          .executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n) return false
        // One job waits at a time, and takes all that have come by then: the first proof decides when.
        await jobs.insert(transaction, PUBLISH_QUEUE, [{ data: {}, startAfter: publishDelayMs / 1000 }])
        return true
      }),
    ),
    recordPinFailure: guard(({ slug, failure, now, retryAt }) =>
      db.transaction().execute(async (transaction) => {
        const { numUpdatedRows } = await transaction
          .updateTable('attestations')
          .set(({ eb }) => ({ pin_attempts: eb('pin_attempts', '+', 1), failure }))
          .$if(retryAt === undefined, (update) => update.set({ status: 'pin_failed' }))
          .where('slug', '=', slug)
          .where('status', '=', 'pending_pin')
          .executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n || retryAt === undefined) return
        // As a delay: the database's clock decides when a job is due, and need not agree with ours.
        await jobs.insert(transaction, PIN_QUEUE, [{ data: { slugs: [slug] }, startAfter: (retryAt - now) / 1000 }])
      }),
    ),
  }
}

export async function findPin(
  db: Kysely<Tables>,
  slug: string,
  fetchNodes: FetchNodes = createNodeReader(db),
): Promise<PinWork | undefined> {
  const found = await db
    .selectFrom('attestations as a')
    .innerJoin('pending_transactions as p', 'p.id', 'a.pending_transaction_id')
    .innerJoin('verifications as v', 'v.id', 'a.verification_id')
    .innerJoin('batches as b', (join) =>
      join.onRef('b.boot_id', '=', 'v.boot_id').onRef('b.sequence', '=', 'v.sequence'),
    )
    .innerJoin('self_attestations as s', 's.hash', 'v.self_attestation_hash')
    .leftJoin('releases as r', (join) =>
      join
        .onRef('r.boot_id', '=', 'v.boot_id')
        .onRef('r.sequence', '=', 'v.sequence')
        .on('r.coordinator_key', '=', sql<Uint8Array>`decode(a.statement ->> 'coordinatorKey', 'hex')`)
        .on('a.version', '=', 2),
    )
    .leftJoin('coordinator_blocks as k', 'k.hash', 'r.coordinator_hash')
    // Of version 2 the collateral that the release names, which may be of an earlier signing of the batch.
    .innerJoin('collaterals as c', (join) =>
      join.on('c.hash', '=', sql<Uint8Array>`coalesce(r.collateral_hash, v.collateral_hash)`),
    )
    .leftJoin('policies as y', (join) =>
      join.on('y.hash', '=', sql<Uint8Array>`decode(a.statement ->> 'policy', 'hex')`),
    )
    .leftJoin('log_notes as n', 'n.hash', 'v.log_note')
    .leftJoin('logs as l', 'l.id', 'n.log_id')
    .where('a.slug', '=', slug)
    .select(['a.log_index', 'n.note', 'n.size as log_size', 'l.hash as log_hash', 'l.key as log_key'])
    .select(['a.slug', 'a.status', 'a.receipt_bytes', 'a.pin_attempts', 'a.created_at', 'p.tx_metadata'])
    .select(['y.bytes as policy', 'a.approvals'])
    .select(['p.kind', 'p.subject', 'a.version', 'r.settings', 'r.ed25519', 'r.ml_dsa_65', 'k.bytes as coordinator'])
    .select(['a.statement', 'a.leaf_index', 'a.path', 'a.witness', 'a.release', 'b.boot_id', 'b.sequence'])
    .select(['b.previous', 'b.tree_size', 'b.quote', 'b.event_log', 'b.mode', 'b.measurement', 'b.config'])
    .select(['v.quote_verified', 'v.tcb_status', 'v.coordinator_mode', 'c.bytes as collateral', 's.json'])
    .executeTakeFirst()
  if (found === undefined) return undefined
  const row = found
  const inclusion = { leafIndex: Number(row.leaf_index), path: fromBytes(row.path).match(/.{64}/g) ?? [] }
  const batch = {
    bootId: fromBytes(row.boot_id),
    sequence: Number(row.sequence),
    previous: fromBytes(row.previous),
    quoteHex: fromBytes(row.quote),
    // Written by the signing path from values of these types; the schemas of the blocks check them once more.
    config: row.config as EnclaveConfig,
    ...(row.event_log === null ? {} : { eventLog: row.event_log }),
  }
  const treeSize = Number(row.tree_size)
  const log = await readProof()
  return {
    slug: row.slug,
    status: row.status,
    records: row.version === 1 ? toRecordsV1() : toRecordsV2(),
    collateral: toOwnBytes(row.collateral),
    receiptBytes: row.receipt_bytes && toOwnBytes(row.receipt_bytes),
    attempts: row.pin_attempts,
    createdAt: row.created_at.getTime(),
  }

  async function readProof(): Promise<TlogProof | undefined> {
    const { note, log_size: logSize, log_hash: logHash, log_index: logIndex } = row
    if (note === null || logSize === null || logHash === null || logIndex === null) return undefined
    const place = { index: Number(logIndex), size: Number(logSize) }
    const nodes = listInclusionNodes(place)
    const readNode = await fetchNodes(fromBytes(logHash), nodes)
    return { index: place.index, proof: createInclusionProof(readNode, place), checkpoint: note }
  }

  function toRecordsV1(): PinRecords {
    const { tx_metadata: txMetadata, release } = row
    if (txMetadata === null || release === null) throw new Error('a row of version 1 is not whole')
    const statement = row.statement as Statement
    return {
      version: 1,
      txMetadata,
      statement,
      inclusion: { ...inclusion, treeSize },
      batch: {
        ...batch,
        mode: row.mode,
        quoteVerified: row.quote_verified,
        measurement: row.measurement as ReceiptRecords['batch']['measurement'],
        tcbStatus: row.tcb_status as TcbStatus,
      },
      coordinator: {
        mode: row.coordinator_mode,
        publicKey: statement.coordinatorKey,
        selfAttestation: JSON.parse(Buffer.from(row.json).toString('utf8')),
        release: fromBytes(release),
      },
      witness: row.witness as EntropyWitness,
    }
  }

  /** Nothing is made of a row whose release is not there: a receipt without both signatures must never be public. */
  function toRecordsV2(): PinRecords {
    const { subject, settings, coordinator, ed25519, ml_dsa_65: mlDsa65 } = row
    if (subject === null || settings === null || coordinator === null || ed25519 === null || mlDsa65 === null) {
      throw new Error('a row of version 2 is not whole')
    }
    const statement = row.statement as StatementV2
    if (statement.policy !== null && row.policy === null) throw new Error('the policy of a vault is missing')
    if (settings.log !== null && log === undefined) throw new Error('the place in the log is missing')
    return {
      version: 2,
      signed: { kind: row.kind, subject } as Signed,
      statement,
      inclusion,
      entropy: row.witness,
      batch: { ...batch, settings, treeSize, ...(row.log_key !== null && { logKey: row.log_key }) },
      coordinator: toOwnBytes(coordinator),
      signatures: { ed25519: toOwnBytes(ed25519), mlDsa65: toOwnBytes(mlDsa65) },
      ...(row.policy && { policy: toOwnBytes(row.policy) }),
      ...(row.approvals && { approvals: row.approvals }),
      ...(log && { log }),
    }
  }
}

async function freezeReceipt(db: Kysely<Tables>, { slug, bytes }: { slug: string; bytes: Uint8Array }): Promise<Bytes> {
  const frozen = await db
    .updateTable('attestations')
    .set({ receipt_bytes: bytes })
    .where('slug', '=', slug)
    .where('receipt_bytes', 'is', null)
    .returning('receipt_bytes')
    .executeTakeFirst()
  const row =
    frozen ?? (await db.selectFrom('attestations').where('slug', '=', slug).select('receipt_bytes').executeTakeFirst())
  if (!row?.receipt_bytes) throw new Error('there is no proof whose receipt could be frozen')
  return toOwnBytes(row.receipt_bytes)
}

/** Drivers answer slices of larger buffers. */
function toOwnBytes(bytes: Uint8Array): Bytes {
  return new Uint8Array(bytes)
}
