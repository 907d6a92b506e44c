import {
  fromHex,
  isEd25519Key,
  isEntropyWitness,
  parseTimestamp,
  SAMPLE_TOLERANCE_MS,
  toEntropyMessage,
} from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { isEd25519Signature } from '@countersign/service/ed25519'

/** Why a sample can't be used. */
export type SampleFault = 'malformed' | 'unsigned' | 'foreign_key' | 'wrong_signature' | 'stale' | 'future'

/** The pinned keys of a source, in hex. */
export type EntropyKeys = ReadonlySet<string>

type CheckSampleOptions = {
  publicKeys: EntropyKeys
  now: number
  maxAgeMs: number
  /** Whether the source signs its samples. */
  isSigned: boolean
  /** Accepts samples from a source that doesn't sign. Verifiers fail such a receipt. */
  allowUnsigned: boolean
}

/**
 * Checks a sample's form, key and age, but not its signature: replayed old samples then cost no signature checks. Returns the first fault. If
 * there is none, the sample may be used once `isSampleSigned` accepts it (for sources that sign).
 */
export function checkSample(witness: Witness, options: CheckSampleOptions): SampleFault | undefined {
  const { publicKeys, now, maxAgeMs, isSigned, allowUnsigned } = options
  const timestampMs = parseTimestamp(witness.timestamp)
  if (timestampMs === undefined || !isEntropyWitness(witness)) return 'malformed'
  const timeFault = checkTime(timestampMs, { now, maxAgeMs })
  if (!isSigned) return allowUnsigned ? timeFault : 'unsigned'
  return publicKeys.has(witness.publicKey) ? timeFault : 'foreign_key'
}

/** Whether the key named in a sample has signed its value, time and sequence. The caller has checked that the key is pinned. */
export function isSampleSigned({ valueHex, timestamp, sequence, publicKey, signatureHex }: Witness): boolean {
  const message = toEntropyMessage({ value: fromHex(valueHex), timestampMs: Date.parse(timestamp), sequence })
  return isEd25519Signature(fromHex(publicKey), fromHex(signatureHex), message)
}

/** Whether a sample with this time may be used now. The limits are inclusive. */
export function checkTime(
  timestampMs: number,
  { now, maxAgeMs }: { now: number; maxAgeMs: number },
): 'stale' | 'future' | undefined {
  if (now - timestampMs > maxAgeMs) return 'stale'
  return timestampMs - now > SAMPLE_TOLERANCE_MS ? 'future' : undefined
}

/**
 * The keys that may sign samples. Rejects, at start, non-canonical keys and keys of small order, under which one signature fits many samples.
 */
export function createEntropyKeys(publicKeys: readonly string[]): EntropyKeys {
  for (const publicKey of publicKeys) {
    if (!isEd25519Key(fromHex(publicKey)))
      throw new RangeError('invalid entropy key: expected a point that is not of small order')
  }
  return new Set(publicKeys)
}
