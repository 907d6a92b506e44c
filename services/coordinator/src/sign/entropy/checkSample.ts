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

/** Why a sample may not be used. */
export type SampleFault = 'malformed' | 'unsigned' | 'foreign_key' | 'wrong_signature' | 'stale' | 'future'

/** Pinned keys of a source, hex. */
export type EntropyKeys = ReadonlySet<string>

type CheckSampleOptions = {
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
 */
export function checkSample(witness: Witness, options: CheckSampleOptions): SampleFault | undefined {
  const { publicKeys, now, maxAgeMs, isSigned, allowUnsigned } = options
  const timestampMs = parseTimestamp(witness.timestamp)
  if (timestampMs === undefined || !isEntropyWitness(witness)) return 'malformed'
  const timeFault = checkTime(timestampMs, { now, maxAgeMs })
  if (!isSigned) return allowUnsigned ? timeFault : 'unsigned'
  return publicKeys.has(witness.publicKey) ? timeFault : 'foreign_key'
}

/** Whether the key that a sample names has signed its value, time and sequence. That the key is pinned has been checked. */
export function isSampleSigned({ valueHex, timestamp, sequence, publicKey, signatureHex }: Witness): boolean {
  const message = toEntropyMessage({ value: fromHex(valueHex), timestampMs: Date.parse(timestamp), sequence })
  return isEd25519Signature(fromHex(publicKey), fromHex(signatureHex), message)
}

/** Whether a sample of that time may be used now; the border belongs to the good. */
export function checkTime(
  timestampMs: number,
  { now, maxAgeMs }: { now: number; maxAgeMs: number },
): 'stale' | 'future' | undefined {
  if (now - timestampMs > maxAgeMs) return 'stale'
  return timestampMs - now > SAMPLE_TOLERANCE_MS ? 'future' : undefined
}

/**
 * The keys that samples may be signed with. A key in another than its canonical encoding, or of small order, under which
 * one signature fits many samples, is refused at the start, not with the first sample.
 */
export function createEntropyKeys(publicKeys: readonly string[]): EntropyKeys {
  for (const publicKey of publicKeys) {
    if (!isEd25519Key(fromHex(publicKey))) throw new RangeError('an entropy key must be a point not of small order')
  }
  return new Set(publicKeys)
}
