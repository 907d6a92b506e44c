import { sha256 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import type { DrandWitness } from './drand.ts'
import type { EntropyWitness } from './entropy.ts'

/**
 * SHA-256 of the canonical JSON of a whole witness: how releases of version 1 and statements of version 2 name it. It covers the
 * source's name and signature too, which the sample's own hash does not.
 */
export function hashWitness(witness: EntropyWitness | DrandWitness): Uint8Array<ArrayBuffer> {
  return sha256(toCanonicalJson(witness))
}
