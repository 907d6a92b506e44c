import { hash } from 'node:crypto'
import type { TcbStatus } from '@countersign/attestation'
import { type EnclaveConfig, type EnclaveSettings, toCanonicalJson } from '@countersign/protocol'
import type { SelfAttestation } from '@countersign/receipt'
import { type Kysely, sql } from 'kysely'
import { CoordinatorError } from '../errors.ts'
import type { Tables } from './tables.ts'

/** What a batch of signings shares: one quote, one collateral, one attestation of the coordinator. */
export type SigningBatch = {
  bootId: string
  sequence: number
  previous: string
  /** All leaf hashes in tree order, also those of other coordinators. Paths are computed from them. */
  leaves: readonly string[]
  quote: Uint8Array
  eventLog: string | undefined
  mode: 'hardware' | 'mock'
  tcbStatus: TcbStatus
  measurement: { mrTd: string; rtmr0: string; rtmr1: string; rtmr2: string; rtmr3: string }
  config: EnclaveConfig
  settings: EnclaveSettings
  /** Canonical bytes; stored once by their hash. */
  collateral: Uint8Array
  selfAttestation: SelfAttestation
  coordinatorMode: 'hardware' | 'mock'
  /** Where a signing of version 2 is among them. */
  release?: Release | undefined
  /** Where the settings have a log: the verifier key of the one that has the entries, and the cosigned note that released the statements. */
  logKey?: string | undefined
  log?: { origin: string; note: string } | undefined
}

/** A coordinator's release of a batch, with both of its signatures. */
export type Release = {
  /** 32 bytes, hex: the Ed25519 key, which the statements name. */
  coordinatorKey: string
  /** Canonical bytes of the block with its attestation; stored once by their hash. */
  coordinator: Uint8Array
  ed25519: Uint8Array
  mlDsa65: Uint8Array
}

/** What a signing refers to by hash. */
export type SharedHashes = {
  collateralHash: Buffer
  selfAttestationHash: Buffer
  /** Where the batch has a release. */
  coordinatorHash: Buffer | undefined
  /** Where the batch has a log. */
  logId: number | undefined
}

export type SharedRecords = {
  /** Resolves when collateral, self-attestation and the coordinator's block are in the database. The log is there before its entries. */
  store(
    batch: Pick<SigningBatch, 'collateral' | 'selfAttestation' | 'release' | 'log' | 'logKey'>,
  ): Promise<SharedHashes>
  /** What a batch shares is stored again at the next call: the database has lost it. */
  forget(batch: Pick<SigningBatch, 'collateral' | 'selfAttestation' | 'release' | 'log'>): void
}

/**
 * Tens of kilobytes that stay the same for hours and that nothing ever deletes: each is written once by this process, outside of
 * the signing transaction, whose foreign keys see to it that they are there. They may be gone all the same: from a standby that was promoted
 * before it had them, or a copy from before they were written.
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
      // Its entries were written before anything was signed for good: the database has lost them.
      if (log !== undefined && found === undefined) {
        throw new CoordinatorError('log_unavailable', 'the log is not recorded')
      }
      // The key goes into the batch's block from here: with another one, the release would be of another block.
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

/** By identity: callers never change such an object. A failure is not remembered. */
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
