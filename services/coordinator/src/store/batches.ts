import { hash } from 'node:crypto'
import type { TcbStatus } from '@countersign/attestation'
import { type EnclaveConfig, type EnclaveSettings, toCanonicalJson } from '@countersign/protocol'
import type { SelfAttestation } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import type { Tables } from './tables.ts'

/** Data that the signings of a batch share: a quote, collateral, and an attestation of the coordinator. */
export type SigningBatch = {
  bootId: string
  sequence: number
  previous: string
  /** All leaf hashes in tree order, including those of other coordinators. The store computes paths from them. */
  leaves: readonly string[]
  quote: Uint8Array
  eventLog: string | undefined
  mode: 'hardware' | 'mock'
  tcbStatus: TcbStatus
  measurement: { mrTd: string; rtmr0: string; rtmr1: string; rtmr2: string; rtmr3: string }
  config: EnclaveConfig
  settings: EnclaveSettings
  /** Canonical bytes, stored once by their hash. */
  collateral: Uint8Array
  selfAttestation: SelfAttestation
  coordinatorMode: 'hardware' | 'mock'
  /** Present if the batch has a signing of version 2. */
  release?: Release | undefined
  /** Present if the settings have a log: its verifier key, and the cosigned note that released the statements. */
  logKey?: string | undefined
  log?: { origin: string; note: string } | undefined
}

/** A coordinator's release of a batch with both signatures. */
export type Release = {
  /** The Ed25519 key that the statements name: 32 bytes, hex. */
  coordinatorKey: string
  /** Canonical bytes of the coordinator's block, stored once by their hash. */
  coordinator: Uint8Array
  ed25519: Uint8Array
  mlDsa65: Uint8Array
}

/** Hashes of the records that a signing refers to. */
export type SharedHashes = {
  collateralHash: Buffer
  selfAttestationHash: Buffer
  /** Present if the batch has a release. */
  coordinatorHash: Buffer | undefined
  /** Present if the batch has a log. */
  logId: number | undefined
}

export type SharedRecords = {
  /** Stores collateral, self-attestation and the coordinator's block, unless they are stored. The log was stored before its entries. */
  store(
    batch: Pick<SigningBatch, 'collateral' | 'selfAttestation' | 'release' | 'log' | 'logKey'>,
  ): Promise<SharedHashes>
  /** Makes the next call store the shared records again, because the database has lost them. */
  forget(batch: Pick<SigningBatch, 'collateral' | 'selfAttestation' | 'release' | 'log'>): void
}

/**
 * Stores records of tens of kilobytes that stay the same for hours and are never deleted. Each process writes each of them once, outside of
 * the signing transaction; foreign keys make sure that they exist. They may still be missing in a standby that was promoted before it
 * received them, or in a restored backup.
 */
export function createSharedRecords(db: Kysely<Tables>): SharedRecords {
  const collaterals = rememberByObject(async (bytes: Uint8Array) => {
    const digest = hash('sha256', bytes, 'buffer')
    await sql`insert into collaterals (hash, bytes) values (${digest}::bytea, ${bytes}::bytea) on conflict do nothing`.execute(
      db,
    )
    return digest
  })
  const selfAttestations = rememberByObject(async (selfAttestation: SigningBatch['selfAttestation']) => {
    const json = toCanonicalJson(selfAttestation)
    const digest = hash('sha256', json, 'buffer')
    await sql`insert into self_attestations (hash, json) values (${digest}::bytea, ${json}::bytea) on conflict do nothing`.execute(
      db,
    )
    return digest
  })
  const coordinators = rememberByObject(async (bytes: Uint8Array) => {
    const digest = hash('sha256', bytes, 'buffer')
    await sql`insert into coordinator_blocks (hash, bytes) values (${digest}::bytea, ${bytes}::bytea) on conflict do nothing`.execute(
      db,
    )
    return digest
  })
  const logs = new Map<string, { id: number; key: string }>()
  async function findLog(origin: string) {
    const found =
      logs.get(origin) ??
      (await db
        .selectFrom('logs')
        .where('hash', '=', hash('sha256', origin, 'buffer'))
        .select(['id', 'key'])
        .executeTakeFirst())
    if (found !== undefined) logs.set(origin, found)
    return found
  }
  return {
    async store({ collateral, selfAttestation, release, log, logKey }) {
      const [collateralHash, selfAttestationHash, coordinatorHash, found] = await Promise.all([
        collaterals.get(collateral),
        selfAttestations.get(selfAttestation),
        release && coordinators.get(release.coordinator),
        log && findLog(log.origin),
      ])
      // The log's entries were committed before any signing. If the log is missing, the database has lost it.
      if (log !== undefined && found === undefined) {
        throw new CoordinatorError('log_unavailable', 'the log is not recorded')
      }
      // This key goes into the batch's block. With another one, the release would cover another block.
      if (found?.key !== logKey) throw new CoordinatorError('attestation_invalid', 'not the key of the recorded log')
      return { collateralHash, selfAttestationHash, coordinatorHash, logId: found?.id }
    },
    forget({ collateral, selfAttestation, release, log }) {
      collaterals.forget(collateral)
      selfAttestations.forget(selfAttestation)
      if (release !== undefined) coordinators.forget(release.coordinator)
      if (log !== undefined) logs.delete(log.origin)
    },
  }
}

/** Caches by object identity, since callers never modify these objects. Failures are not cached. */
function rememberByObject<Key extends object, Value>(make: (key: Key) => Promise<Value>) {
  const known = new WeakMap<Key, Promise<Value>>()
  return {
    get(key: Key): Promise<Value> {
      const earlier = known.get(key)
      if (earlier !== undefined) return earlier
      const made = make(key)
      known.set(key, made)
      made.catch(() => known.delete(key))
      return made
    },
    forget: (key: Key) => void known.delete(key),
  }
}
