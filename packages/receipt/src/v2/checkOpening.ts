import {
  computeCommitment,
  fromHex,
  hashContent,
  kinds,
  type OpeningContent,
  parseOpening,
  recoverPublicKey,
  type StatementV2,
  toAddress,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { failIf, needs, StepFailure, StepSkip, type Transcript } from '../check/steps.ts'

/**
 * opening → digest → signature: what an off-chain signature was, if its owner shows it. Without an opening all three are skipped,
 * and the rest still says that this wallet signed something at this time. Answers what was signed, where that is shown.
 */
export async function checkOpening(
  { run }: Transcript,
  input: { commitment: string; statement: StatementV2; opening: Uint8Array | undefined },
): Promise<OpeningContent | undefined> {
  const opening = await run('opening', () => {
    const parsed = parseOpening(needs(input.opening, 'no opening was given'))
    const isOfThis = toHex(computeCommitment(parsed)) === input.commitment
    failIf(!isOfThis, 'The opening is of another signature, or was changed.')
    const shown = (['content', 'signature'] as const).filter((half) => typeof parsed[half] !== 'string')
    return [`It shows the ${shown.join(' and the ')}.`, parsed]
  })
  const { content, signature } = opening ?? {}

  const shown = await run('digest', () => {
    if (typeof content !== 'object') throw new StepSkip('What was signed is not shown.')
    const digest = toPrefixedHex(hashContent(content))
    failIf(digest !== content.digest, `What is shown hashes to ${digest}, not to the digest.`)
    return [`The ${kinds[content.kind].name} hashes to ${digest}.`, content]
  })

  await run('signature', () => {
    const isWhole = typeof content === 'object' && typeof signature === 'object'
    if (!isWhole) throw new StepSkip('The signature is judged where both halves are shown.')
    return [
      checkSignature({ digest: content.digest, signature: signature.signature, statement: input.statement }),
      undefined,
    ]
  })
  return shown
}

/** opening: given for a receipt that hides nothing. */
export async function refuseOpening({ run }: Transcript): Promise<void> {
  await run('opening', () => {
    throw new StepFailure('There is nothing to open: all of this signature is public.')
  })
}

/** That a signature over a digest is of the key and the wallet in the statement, in a sentence. */
export function checkSignature(signed: { digest: string; signature: string; statement: StatementV2 }): string {
  const { digest, signature, statement } = signed
  const publicKey = recoverPublicKey(fromHex(digest.slice(2)), fromHex(signature.slice(2)))
  const address = toAddress(publicKey)
  failIf(address !== statement.address, `The signature is of ${address}, not of ${statement.address}.`)
  failIf(toHex(publicKey) !== statement.publicKey, 'The signature is of another public key than the statement’s.')
  return `The signature, with a low s, recovers to ${address}.`
}
