import { fromHex, hashEntropy, isZero, toEntropyMessage, toHex, verifyEd25519 } from '@countersign/protocol'
import type { Anchors } from './anchors.ts'
import type { AttestationReceiptV1 } from './schema.ts'
import { failIf, StepFailure, StepSkip, type Transcript } from './transcript.ts'

/** entropy → entropy-key: the witness. Answers `mock` when a simulated satellite signed it. */
export async function checkWitness(
  { run }: Transcript,
  receipt: AttestationReceiptV1,
  { anchors, mockEntropyKeys }: { anchors: Anchors; mockEntropyKeys: readonly string[] },
): Promise<'mock' | undefined> {
  const { entropy, signer } = receipt

  await run('entropy', () => {
    const value = fromHex(entropy.valueHex)
    const hash = toHex(hashEntropy(value))
    failIf(hash !== signer.statement.entropyHash, 'The sample is not the one that the enclave’s statement names.')
    const timestampMs = toTime(entropy.timestamp, 'The time of the sample')
    const message = toEntropyMessage({ value, timestampMs, sequence: entropy.sequence })
    failIf(
      isZero(fromHex(entropy.publicKey)) && isZero(fromHex(entropy.signatureHex)),
      `The sample is not signed: ${entropy.source} does not sign, so nobody can check where it comes from and when it was drawn.`,
    )
    const isSigned = verifyEd25519(fromHex(entropy.publicKey), fromHex(entropy.signatureHex), message)
    failIf(!isSigned, 'The source did not sign this sample.')
    return [`Sample ${entropy.sequence} of ${entropy.source}, signed by ${entropy.publicKey}.`, undefined]
  })

  return run('entropy-key', () => {
    const { publicKey } = entropy
    if (mockEntropyKeys.includes(publicKey)) return [`${publicKey} is a simulated satellite: MOCK.`, 'mock' as const]
    if (!anchors.entropyKeys?.length) throw new StepSkip(`No entropy keys to hold ${publicKey} against.`)
    failIf(!anchors.entropyKeys.includes(publicKey), `The key ${publicKey} is not among those you trust.`)
    return [`The key ${publicKey} is among those you trust.`, undefined]
  })
}

/** Milliseconds of an ISO 8601 time in its one spelling; a day that does not exist is refused. */
export function toTime(text: string, what: string): number {
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== text) throw new StepFailure(`${what} does not exist.`)
  return date.getTime()
}
