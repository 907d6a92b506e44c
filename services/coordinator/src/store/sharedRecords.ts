import { hash } from 'node:crypto'
import { toCanonicalJson } from '@countersign/protocol'
import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'
import type { SigningBatch } from './types.ts'

/** What a signing refers to by hash. */
export type SharedHashes = {
  collateralHash: Buffer
  selfAttestationHash: Buffer
  /** Where the batch has a release. */
  coordinatorHash: Buffer | undefined
}

export type SharedRecords = {
  /** Resolves when collateral, self-attestation and the coordinator's block are in the database. */
  store(batch: Pick<SigningBatch, 'collateral' | 'selfAttestation' | 'release'>): Promise<SharedHashes>
}

/**
 * Tens of kilobytes that stay the same for hours and that nothing ever deletes: each is written once by this process, outside of
 * the signing transaction, whose foreign keys see to it that they are there.
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
  return {
    async store({ collateral, selfAttestation, release }) {
      const [collateralHash, selfAttestationHash, coordinatorHash] = await Promise.all([
        collaterals(collateral),
        selfAttestations(selfAttestation),
        release && coordinators(release.coordinator),
      ])
      return { collateralHash, selfAttestationHash, coordinatorHash }
    },
  }
}

/** By identity: callers never change such an object. A failure is not remembered. */
function rememberByObject<Key extends object, Value>(make: (key: Key) => Promise<Value>) {
  const known = new WeakMap<Key, Promise<Value>>()
  return (key: Key): Promise<Value> => {
    const earlier = known.get(key)
    if (earlier !== undefined) return earlier
    const made = make(key)
    known.set(key, made)
    made.catch(() => known.delete(key))
    return made
  }
}
