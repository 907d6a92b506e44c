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

/** entropy → entropy-key: the witness. Answers `mock` when a simulated source signed it. */
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
      `The sample is not signed: ${entropy.source} does not sign, so nobody can check where it comes from and when it was drawn.`,
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
    if (mockEntropyKeys.includes(publicKey)) return [`${publicKey} is of a simulated source: MOCK.`, 'mock' as const]
    if (entropyKeys.length === 0) throw new StepSkip(`No entropy keys to compare ${publicKey} with.`)
    return [`The key ${publicKey} is among the anchors.`, undefined]
  })
}

/** Version 1 names the sample's value, version 2 the whole witness. */
function isStated({ entropy, signer: { statement } }: ReceiptView): boolean {
  if ('witness' in statement) return toHex(hashWitness(entropy)) === statement.witness
  return toHex(hashEntropy(fromHex(entropy.valueHex))) === statement.entropyHash
}

/** A round of a public beacon: which beacon, and when its rounds are due, is under the quote with the enclave's settings. */
function checkRound(entropy: DrandWitness, settings: EnclaveSettings | undefined): string {
  const { chainHash, publicKey, sequence, timestamp } = entropy
  const beacons = settings?.entropy.filter((one) => one.kind === 'drand') ?? []
  const named = beacons.filter((one) => one.chainHash === chainHash)
  failIf(named.length === 0, 'The enclave’s settings do not name this beacon.')
  // Settings may have one chain twice. The signature is judged once, however many there are: they could be a stranger's.
  const due = toTime(timestamp, 'The time of the sample')
  const beacon = named.find((one) => one.key === publicKey && toRoundTimeMs(one, sequence) === due)
  const isSigned = beacon !== undefined && verifyDrandWitness(beacon, entropy)
  failIf(!isSigned, 'The beacon did not sign this round, or it was due at another time.')
  // By its key: the source is a name that nobody signed, and could be that of another beacon.
  return `Round ${sequence}, signed by ${publicKey}: a public beacon, shared by all signatures of its round.`
}

/** Milliseconds of an ISO 8601 time in its one spelling; a day that does not exist is refused. */
export function toTime(text: string, what: string): number {
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== text) throw new StepFailure(`${what} does not exist.`)
  return date.getTime()
}
