import { hash } from 'node:crypto'
import { type DrandBeacon, type DrandWitness, toRoundTimeMs, verifyDrandWitness } from '@countersign/protocol'
import { z } from 'zod'
import { EntropySourceError } from './entropySource.ts'
import { type Fetch, fetchJson } from './fetchJson.ts'

/** Provides the newest verified round of a public beacon. */
export type BeaconSource = { getRound(): Promise<DrandWitness> }

export type CreateDrandSourceParameters = {
  /** A relay such as `https://api.drand.sh`. It doesn't have to be trusted, because the coordinator verifies every round. */
  url: string
  fetch: Fetch
  timeoutMs?: number
  beacon: DrandBeacon
}

const answer = z.object({
  round: z.int().min(1),
  signature: z.string().regex(/^[0-9a-f]{96}$/),
  /** Redundant: the hash of the signature. Some relays omit it. */
  randomness: z.string().optional(),
})

/** The latest time that a timestamp can express. */
const MAX_TIME_MS = 253_402_300_799_999

/**
 * Public randomness from drand: the latest round, BLS-verified with the pinned key. Only receipts of version 2 can hold a beacon's signature.
 */
export function createDrandSource(parameters: CreateDrandSourceParameters): BeaconSource {
  const { url, fetch, timeoutMs = 1_500, beacon } = parameters
  const latest = `${url.replace(/\/+$/, '')}/${beacon.chainHash}/public/latest`
  // Cache the last round, because a pairing takes tens of milliseconds.
  let verified: DrandWitness | undefined

  return {
    async getRound() {
      const parsed = answer.safeParse(await fetchJson({ fetch }, { url: latest, timeoutMs }))
      if (!parsed.success) throw new EntropySourceError('malformed', { details: 'not a round' })
      const { round, signature, randomness } = parsed.data
      const witness = toWitness(beacon, round, signature)
      const isKnown = verified?.sequence === round && verified.signatureHex === signature
      if (!isKnown && !verifyDrandWitness(beacon, witness)) throw new EntropySourceError('wrong_signature')
      verified = witness
      if (randomness !== undefined && randomness !== witness.valueHex) {
        throw new EntropySourceError('malformed', { details: 'randomness' })
      }
      return witness
    },
  }
}

function toWitness(beacon: DrandBeacon, round: number, signature: string): DrandWitness {
  const dueMs = toRoundTimeMs(beacon, round)
  // Only the key's holder could sign such a round. Without this check `toISOString` would throw a RangeError.
  if (dueMs > MAX_TIME_MS) throw new EntropySourceError('malformed', { details: 'round' })
  return {
    kind: 'drand',
    source: `drand/${beacon.chainHash}`,
    chainHash: beacon.chainHash,
    valueHex: hash('sha256', Buffer.from(signature, 'hex'), 'hex'),
    signatureHex: signature,
    publicKey: beacon.key,
    timestamp: new Date(dueMs).toISOString(),
    sequence: round,
  }
}
