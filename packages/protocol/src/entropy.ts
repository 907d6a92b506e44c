import { sha256 } from '@noble/hashes/sha2.js'
import { isNatural, toField } from './fields.ts'
import { isHex } from './hex.ts'
import { hasExactMembers } from './plainObject.ts'
import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

/** An entropy sample with its source's signature, as receipts carry it. One of a source that does not sign has zeros as key. */
export type EntropyWitness = {
  /** A name to show, which the signature does not cover. */
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

/** How much older than the signature a sample may be, the tolerance for clocks included: what verifiers of receipts accept. */
export const MAX_SAMPLE_AGE_MS = 65_000
/** How far the clocks of source, enclave and coordinator may differ: what verifiers of receipts accept. */
export const SAMPLE_TOLERANCE_MS = 5_000

/** Whether a value has the form of a witness. That its signature holds is another question. */
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

/** Printable ASCII: a name to show, which nothing else depends on. */
export function isSourceName(value: unknown): value is string {
  return typeof value === 'string' && /^[\x20-\x7e]{1,256}$/.test(value)
}

/** Milliseconds of an ISO 8601 time in its one spelling with milliseconds, from 1970 on; undefined for any other text. */
export function parseTimestamp(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)) return undefined
  const timeMs = Date.parse(text)
  // Date rolls over the 31st of a short month, and 24 o'clock.
  return timeMs >= 0 && new Date(timeMs).getUTCDate() === Number(text.slice(8, 10)) ? timeMs : undefined
}

/** What a satellite signs (Ed25519) about a sample. */
export function toEntropyMessage(fields: Preimage<'entropy'>): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.entropy, fields)
}

/** SHA-256 of a sample: how statements and wallets name it. */
export function hashEntropy(value: Uint8Array): Uint8Array<ArrayBuffer> {
  return sha256(toField('value', value, 32))
}
