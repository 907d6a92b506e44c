import { hash } from 'node:crypto'
import { fromHex, isRoundSigned, quicknet as quicknetBeacon } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { z } from 'zod'
import type { EntropySource } from '../ports.ts'
import { EntropySourceError } from './entropySourceError.ts'
import { type Fetch, fetchJson } from './fetchJson.ts'

/** A drand network of the scheme `bls-unchained-g1-rfc9380`, pinned. */
export type DrandChain = {
  /** Its name in witnesses, before the chain hash. */
  name: string
  /** 32 bytes, hex. */
  hash: string
  /** 96 bytes, hex: a compressed point of G2. */
  publicKey: string
  genesisTimeS: number
  periodS: number
}

/** The network that is asked unless told. */
export const quicknet: DrandChain = {
  name: 'quicknet',
  hash: quicknetBeacon.chainHash,
  publicKey: quicknetBeacon.key,
  genesisTimeS: quicknetBeacon.genesisS,
  periodS: quicknetBeacon.periodS,
}

export type CreateDrandSourceParameters = {
  /** A relay, such as `https://api.drand.sh`. It need not be trusted: every round is verified here. */
  url: string
  fetch: Fetch
  timeoutMs?: number
  chain?: DrandChain
}

const beacon = z.object({
  round: z.int().min(1),
  signature: z.string().regex(/^[0-9a-f]{96}$/),
  /** Redundant: the hash of the signature. Some relays leave it out. */
  randomness: z.string().optional(),
})
type Beacon = z.infer<typeof beacon>

/**
 * Public randomness of drand: the latest round, BLS-verified against the pinned key. A round is one sample, and there is
 * one every three seconds, so this source is for low rates only.
 *
 * In a witness, `valueHex` is the round's randomness (the SHA-256 of its signature), `timestamp` the time that the round
 * is due, `sequence` the round, and `source` names the chain by its hash. The signature itself cannot go there: it is 48
 * bytes of BLS12-381 under a 96-byte key, and the fields of a receipt hold Ed25519. They are zeros, rather than something
 * that looks like a signature, so the source counts as unsigned: it needs `ENTROPY_ALLOW_UNSIGNED`, and a verifier fails
 * that step of the receipt, though anyone can ask any relay for the round and compare.
 *
 * @example
 * const source = createDrandSource({ url: 'https://api.drand.sh', fetch })
 */
export function createDrandSource(parameters: CreateDrandSourceParameters): EntropySource {
  const { url, fetch, timeoutMs = 1_500, chain = quicknet } = parameters
  const latest = `${url.replace(/\/+$/, '')}/${chain.hash}/public/latest`
  // A pairing takes tens of milliseconds; the same round asked for again costs none.
  let verified: Beacon | undefined

  return {
    name: 'drand',
    isSigned: false,
    async getSamples() {
      const parsed = beacon.safeParse(await fetchJson({ fetch }, { url: latest, timeoutMs }))
      if (!parsed.success) throw new EntropySourceError('malformed', { details: 'not a round' })
      const { round, signature, randomness } = parsed.data
      if (verified?.round !== round || verified.signature !== signature) {
        if (!isRoundSigned({ publicKey: chain.publicKey, round, signature }))
          throw new EntropySourceError('wrong_signature')
        verified = { round, signature }
      }
      const witness = toWitness(chain, { round, signature })
      if (randomness !== undefined && randomness !== witness.valueHex) {
        throw new EntropySourceError('malformed', { details: 'randomness' })
      }
      return [witness]
    },
  }
}

function toWitness(chain: DrandChain, { round, signature }: Beacon): Witness {
  const dueMs = (chain.genesisTimeS + (round - 1) * chain.periodS) * 1000
  // A round beyond the calendar can only be a lie of the key's holder; `toISOString` would throw a RangeError.
  if (dueMs > 253_402_300_799_999) throw new EntropySourceError('malformed', { details: 'round' })
  return {
    source: `drand/${chain.name}/${chain.hash}`,
    valueHex: Buffer.from(sha256(fromHex(signature))).toString('hex'),
    signatureHex: '00'.repeat(64),
    publicKey: '00'.repeat(32),
    timestamp: new Date(dueMs).toISOString(),
    sequence: round,
  }
}

function sha256(bytes: Uint8Array): Uint8Array {
  return hash('sha256', bytes, 'buffer')
}
