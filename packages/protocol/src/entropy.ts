import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes } from './bytes.ts'
import { toField, toU64be } from './fields.ts'
import { tags, toTagBytes } from './tags.ts'

export type EntropyMessageParameters = {
  /** 32 bytes: the sample. */
  value: Uint8Array
  /** Milliseconds since 1970 of the sample's ISO 8601 `timestamp`. */
  timestampMs: number
  sequence: number
}

/** What a satellite signs (Ed25519) about a sample. */
export function toEntropyMessage({ value, timestampMs, sequence }: EntropyMessageParameters): Uint8Array<ArrayBuffer> {
  return concatBytes(toTagBytes(tags.entropy), toField('value', value, 32), toU64be(timestampMs), toU64be(sequence))
}

/** SHA-256 of a sample: how statements and wallets name it. */
export function hashEntropy(value: Uint8Array): Uint8Array<ArrayBuffer> {
  return sha256(toField('value', value, 32))
}
