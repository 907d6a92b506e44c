import { hash } from 'node:crypto'
import { type DrandBeacon, type DrandWitness, toRoundTimeMs, verifyDrandWitness } from '@countersign/protocol'
import { z } from 'zod'
import { EntropySourceError } from './entropySource.ts'
import { type Fetch, fetchJson } from './fetchJson.ts'

/** The newest round of a public beacon, verified. */
export type BeaconSource = { getRound(): Promise<DrandWitness> }

export type CreateDrandSourceParameters = {
  /** A relay, such as `https://api.drand.sh`. It need not be trusted: every round is verified here. */
  url: string
  fetch: Fetch
  timeoutMs?: number
  beacon: DrandBeacon
}

const answer = z.object({
  round: z.int().min(1),
  signature: z.string().regex(/^[0-9a-f]{96}$/),
  /** Redundant: the hash of the signature. Some relays leave it out. */
  randomness: z.string().optional(),
})

/** The end of the calendar that a timestamp has. */
const MAX_TIME_MS = 253_402_300_799_999

/**
 * Public randomness of drand: the latest round, BLS-verified against the pinned key. Only receipts of version 2 have a place for the
 * signature of a beacon.
 */
export function createDrandSource(parameters: CreateDrandSourceParameters): BeaconSource {
  const { url, fetch, timeoutMs = 1_500, beacon } = parameters
  const latest = `${url.replace(/\/+$/, '')}/${beacon.chainHash}/public/latest`
  // A pairing takes tens of milliseconds; the same round asked for again costs none.
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
  // A round beyond the calendar can only be a lie of the key's holder; `toISOString` would throw a RangeError.
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
