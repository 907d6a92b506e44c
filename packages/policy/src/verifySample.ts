import {
  type DrandWitness,
  type EntropyWitness,
  fromHex,
  isDrandWitness,
  isEntropyWitness,
  parseTimestamp,
  toEntropyMessage,
  verifyDrandWitness,
  verifyEd25519,
} from '@countersign/protocol/core'
import type { TimedSample } from './checkPolicy.ts'
import type { TimeSource } from './policy.ts'

/**
 * The sample as a proof of time for a schedule, if one of the policy's sources signed it. Undefined otherwise. For callers that have not
 * verified the sample: a beacon round takes tens of milliseconds.
 *
 * @example
 * checkPolicy(policy, { kind: 'transaction', txMetadata, sample: verifySample(policy.time, receipt.entropy) })
 */
export function verifySample(
  time: readonly TimeSource[] | undefined,
  witness: EntropyWitness | DrandWitness,
): TimedSample | undefined {
  const source = time?.find((one) => isSignedBy(one, witness))
  const timeMs = parseTimestamp(witness.timestamp)
  return source === undefined || timeMs === undefined ? undefined : { source, timeMs }
}

function isSignedBy(source: TimeSource, witness: EntropyWitness | DrandWitness): boolean {
  if (source.kind === 'drand') return isDrandWitness(witness) && verifyDrandWitness(source, witness)
  // A beacon round has an extra member, so it can't be a satellite's.
  if (!isEntropyWitness(witness) || witness.publicKey !== source.key) return false
  const { valueHex, signatureHex, sequence, timestamp } = witness
  const timestampMs = parseTimestamp(timestamp)
  if (timestampMs === undefined) return false
  const message = toEntropyMessage({ value: fromHex(valueHex), timestampMs, sequence })
  return verifyEd25519(fromHex(source.key), fromHex(signatureHex), message)
}
