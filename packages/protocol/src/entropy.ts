import { sha256 } from '@noble/hashes/sha2.js'
import { isNatural, toField } from './fields.ts'
import { isHex } from './hex.ts'
import { hasExactMembers } from './plainObject.ts'
import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

/** An entropy sample with its source's signature, as in receipts. The key is all zeros if the source doesn't sign. */
export type EntropyWitness = {
  /** The display name. The signature doesn't cover it. */
  source: string
  /** 32 bytes. */
  valueHex: string
  /** 64 bytes: Ed25519 over `toEntropyMessage`. */
  signatureHex: string
  /** 32 bytes. */
  publicKey: string
  /** ISO 8601 in UTC with milliseconds. */
  timestamp: string
  sequence: number
}

const WITNESS_MEMBERS = ['source', 'valueHex', 'signatureHex', 'publicKey', 'timestamp', 'sequence'] as const

/** The maximum age of a sample when it is used, including the clock tolerance. Receipt verifiers use the same limit. */
export const MAX_SAMPLE_AGE_MS = 65_000
/** The tolerance between the clocks of source, enclave and coordinator. Receipt verifiers use the same value. */
export const SAMPLE_TOLERANCE_MS = 5_000

/** Checks only the form of a sample, not its signature. */
export function isEntropyWitness(value: unknown): value is EntropyWitness {
  if (!hasExactMembers(value, WITNESS_MEMBERS)) return false
  const { source, valueHex, signatureHex, publicKey, timestamp, sequence } = value
  return (
    isSourceName(source) &&
    isHex(valueHex, 32) &&
    isHex(signatureHex, 64) &&
    isHex(publicKey, 32) &&
    typeof timestamp === 'string' &&
    parseTimestamp(timestamp) !== undefined &&
    isNatural(sequence)
  )
}

/** Printable ASCII, for display only. */
export function isSourceName(value: unknown): value is string {
  return typeof value === 'string' && /^[\x20-\x7e]{1,256}$/.test(value)
}

/** Converts an ISO 8601 time from 1970 on to milliseconds. Accepts only UTC with milliseconds, and returns undefined for other text. */
export function parseTimestamp(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)) return undefined
  const timeMs = Date.parse(text)
  // Date accepts the 31st of a short month and 24:00, and rolls over.
  return timeMs >= 0 && new Date(timeMs).getUTCDate() === Number(text.slice(8, 10)) ? timeMs : undefined
}

/** The message that a source signs (Ed25519) for a sample. */
export function toEntropyMessage(fields: Preimage<'entropy'>): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.entropy, fields)
}

/** SHA-256 of a sample, for statements and wallets. */
export function hashEntropy(value: Uint8Array): Uint8Array<ArrayBuffer> {
  return sha256(toField('value', value, 32))
}
