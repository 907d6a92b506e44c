import { fromHex, toEntropyMessage } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { ed25519 } from '@noble/curves/ed25519.js'
import { isEd25519Signature } from '../ed25519.ts'

/** Why a sample may not be used. */
export type SampleFault = 'malformed' | 'unsigned' | 'foreign_key' | 'wrong_signature' | 'stale' | 'future'

/** Pinned keys of a source, hex. */
export type EntropyKeys = ReadonlySet<string>

/** How far the clock of a source may run ahead of ours: the tolerance that verifiers of receipts grant too. */
const MAX_AHEAD_MS = 5_000

export type CheckSampleOptions = {
  publicKeys: EntropyKeys
  now: number
  maxAgeMs: number
  /** Whether the source signs at all. */
  isSigned: boolean
  /** Takes samples of a source that does not sign. Verifiers fail such a receipt. */
  allowUnsigned: boolean
}

/**
 * Judges one sample by form, pinned key and age: a source that replays old samples costs no signature checks. Answers its first
 * fault, or undefined when it may be used if its signature holds (`isSampleSigned`), where its source signs.
 *
 * @example
 * const fault = checkSample(witness, { publicKeys, now, maxAgeMs: 60_000, isSigned: true, allowUnsigned: false })
 */
export function checkSample(witness: Witness, options: CheckSampleOptions): SampleFault | undefined {
  const { publicKeys, now, maxAgeMs, isSigned, allowUnsigned } = options
  const timestampMs = parseTimestamp(witness.timestamp)
  if (timestampMs === undefined || !isWellFormed(witness)) return 'malformed'
  const timeFault = checkTime(timestampMs, { now, maxAgeMs })
  if (!isSigned) return allowUnsigned ? timeFault : 'unsigned'
  return publicKeys.has(witness.publicKey) ? timeFault : 'foreign_key'
}

/** Whether the key that a sample names has signed its value, time and sequence. That the key is pinned has been checked. */
export function isSampleSigned({ valueHex, timestamp, sequence, publicKey, signatureHex }: Witness): boolean {
  const message = toEntropyMessage({ value: fromHex(valueHex), timestampMs: Date.parse(timestamp), sequence })
  return isEd25519Signature(fromHex(publicKey), message, fromHex(signatureHex))
}

/** Whether a sample of that time may be used now; the border belongs to the good. */
export function checkTime(
  timestampMs: number,
  { now, maxAgeMs }: { now: number; maxAgeMs: number },
): 'stale' | 'future' | undefined {
  if (now - timestampMs > maxAgeMs) return 'stale'
  return timestampMs - now > MAX_AHEAD_MS ? 'future' : undefined
}

/** Milliseconds of an ISO 8601 time in its one spelling with milliseconds; undefined for any other text. */
export function parseTimestamp(text: string): number | undefined {
  const date = new Date(text)
  return !Number.isNaN(date.getTime()) && date.toISOString() === text && /^\d{4}-/.test(text)
    ? date.getTime()
    : undefined
}

/**
 * The keys that samples may be signed with. A key in another than its canonical encoding, or of small order, under which
 * one signature fits many samples, is refused at the start, not with the first sample.
 */
export function createEntropyKeys(publicKeys: readonly string[]): EntropyKeys {
  for (const publicKey of publicKeys) {
    // Strict by RFC 8032 §5.1.3; throws for what is no point of the curve.
    const isSmall = ed25519.Point.fromBytes(fromHex(publicKey)).isSmallOrder()
    if (isSmall) throw new RangeError('an entropy key must not be of small order')
  }
  return new Set(publicKeys)
}

function isWellFormed({ source, valueHex, signatureHex, publicKey, sequence }: Witness): boolean {
  return (
    /^[\x20-\x7e]{1,256}$/.test(source) &&
    /^[0-9a-f]{64}$/.test(valueHex) &&
    /^[0-9a-f]{128}$/.test(signatureHex) &&
    /^[0-9a-f]{64}$/.test(publicKey) &&
    Number.isSafeInteger(sequence) &&
    sequence >= 0
  )
}
