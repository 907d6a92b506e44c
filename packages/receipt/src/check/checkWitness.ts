import {
  type DrandWitness,
  type EnclaveSettings,
  fromHex,
  hashEntropy,
  hashWitness,
  isZero,
  toEntropyMessage,
  toHex,
  toRoundTimeMs,
  verifyDrandWitness,
  verifyEd25519,
} from '@countersign/protocol'
import type { ReceiptView } from '../receiptView.ts'
import type { Anchors } from './anchors.ts'
import { failIf, NOT_IN_MANIFEST, StepFailure, StepSkip, type Transcript } from './steps.ts'

/** entropy → entropy-key: the sample. Returns `mock` if a simulated source signed it. */
export async function checkWitness(
  { run }: Transcript,
  receipt: ReceiptView,
  { anchors, mockEntropyKeys }: { anchors: Anchors; mockEntropyKeys: readonly string[] },
): Promise<'mock' | undefined> {
  const { entropy, signer } = receipt

  await run('entropy', () => {
    failIf(!isStated(receipt), 'The sample is not the one that the enclave’s statement names.')
    if ('kind' in entropy) return [checkRound(entropy, signer.settings), undefined]
    const timestampMs = toTime(entropy.timestamp, 'The time of the sample')
    const message = toEntropyMessage({ value: fromHex(entropy.valueHex), timestampMs, sequence: entropy.sequence })
    failIf(
      isZero(fromHex(entropy.publicKey)) && isZero(fromHex(entropy.signatureHex)),
      `The sample is not signed: ${entropy.source} does not sign, so its origin and time can’t be checked.`,
    )
    const isSigned = verifyEd25519(fromHex(entropy.publicKey), fromHex(entropy.signatureHex), message)
    failIf(!isSigned, 'The source did not sign this sample.')
    const isNamed =
      signer.settings?.entropy.some((one) => one.kind === 'satellite' && one.key === entropy.publicKey) ?? true
    failIf(!isNamed, 'The enclave’s settings do not name this source.')
    return [`Sample ${entropy.sequence} of ${entropy.source}, signed by ${entropy.publicKey}.`, undefined]
  })

  return run('entropy-key', () => {
    const { publicKey } = entropy
    const { entropyKeys = [] } = anchors
    const isForeign = entropyKeys.length > 0 && !entropyKeys.includes(publicKey)
    failIf(isForeign, `The key ${publicKey} is not among the anchors.`, NOT_IN_MANIFEST)
    if (mockEntropyKeys.includes(publicKey))
      return [`${publicKey} belongs to a simulated source: MOCK.`, 'mock' as const]
    if (entropyKeys.length === 0) throw new StepSkip(`No entropy keys to compare ${publicKey} with.`)
    return [`The key ${publicKey} is among the anchors.`, undefined]
  })
}

/** Version 1 has the hash of the sample's value, version 2 that of the whole sample. */
function isStated({ entropy, signer: { statement } }: ReceiptView): boolean {
  if ('witness' in statement) return toHex(hashWitness(entropy)) === statement.witness
  return toHex(hashEntropy(fromHex(entropy.valueHex))) === statement.entropyHash
}

/** A round of a public beacon. The enclave's settings, which the quote covers, have the beacon and the times of its rounds. */
function checkRound(entropy: DrandWitness, settings: EnclaveSettings | undefined): string {
  const { chainHash, publicKey, sequence, timestamp } = entropy
  const beacons = settings?.entropy.filter((one) => one.kind === 'drand') ?? []
  const named = beacons.filter((one) => one.chainHash === chainHash)
  failIf(named.length === 0, 'The enclave’s settings do not name this beacon.')
  // Untrusted settings may repeat a chain many times. The signature is verified once.
  const due = toTime(timestamp, 'The time of the sample')
  const beacon = named.find((one) => one.key === publicKey && toRoundTimeMs(one, sequence) === due)
  const isSigned = beacon !== undefined && verifyDrandWitness(beacon, entropy)
  failIf(!isSigned, 'The beacon did not sign this round, or it was due at another time.')
  // Shows the key, because the source's name is unsigned and may belong to another beacon.
  return `Round ${sequence}, signed by ${publicKey}: a public beacon, shared by all signatures of its round.`
}

/** Milliseconds of an ISO 8601 time. Rejects days that don't exist. */
export function toTime(text: string, what: string): number {
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== text) throw new StepFailure(`${what} does not exist.`)
  return date.getTime()
}
