import {
  type AddressSubject,
  computeCommitment,
  fromHex,
  hashContent,
  hashOwner,
  kinds,
  type OpeningContent,
  parseOpening,
  parseOwnerOpening,
  recoverPublicKey,
  type StatementV2,
  toAddress,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { failIf, needs, StepFailure, StepSkip, type Transcript } from '../check/steps.ts'

/**
 * opening → digest → signature: the content of an off-chain signature. Without an opening all three are skipped, and the rest still shows
 * that
 * this wallet signed something at this time. Returns the content if the opening shows it.
 */
export async function checkOpening(
  { run }: Transcript,
  input: { commitment: string; statement: StatementV2; opening: Uint8Array | undefined },
): Promise<OpeningContent | undefined> {
  const opening = await run('opening', () => {
    const parsed = parseOpening(needs(input.opening, 'no opening was given'))
    const isOfThis = toHex(computeCommitment(parsed)) === input.commitment
    failIf(!isOfThis, 'The opening belongs to another signature, or was changed.')
    const shown = (['content', 'signature'] as const).filter((half) => typeof parsed[half] !== 'string')
    return [`It shows the ${shown.join(' and the ')}.`, parsed]
  })
  const { content, signature } = opening ?? {}

  const shown = await run('digest', () => {
    if (typeof content !== 'object') throw new StepSkip('The signed content is not shown.')
    const digest = toPrefixedHex(hashContent(content))
    failIf(digest !== content.digest, `The shown content hashes to ${digest}, not to the digest.`)
    return [`The ${kinds[content.kind].name} hashes to ${digest}.`, content]
  })

  await run('signature', () => {
    const isWhole = typeof content === 'object' && typeof signature === 'object'
    if (!isWhole) throw new StepSkip('The signature can only be checked if both halves are shown.')
    return [
      checkSignature({ digest: content.digest, signature: signature.signature, statement: input.statement }),
      undefined,
    ]
  })
  return shown
}

/** opening: whose address it is, if the owner shows it. */
export async function checkOwner(
  { run }: Transcript,
  { address, owner }: AddressSubject,
  opening: Uint8Array | undefined,
): Promise<void> {
  await run('opening', () => {
    const parsed = parseOwnerOpening(needs(opening, 'the owner is sealed'))
    failIf(toHex(hashOwner(parsed)) !== owner, 'The opening is of another owner or address, or was changed.')
    const { issuer, subject, email } = parsed.identity
    return [`${address} belongs to ${email ?? `subject ${JSON.stringify(subject)}`} at ${issuer}.`, undefined]
  })
}

/** opening: given for a receipt without a commitment. */
export async function refuseOpening({ run }: Transcript): Promise<void> {
  await run('opening', () => {
    throw new StepFailure('There is nothing to open: all of this signature is public.')
  })
}

/** Checks that the key and wallet in the statement signed a digest. Returns a sentence. */
export function checkSignature(signed: { digest: string; signature: string; statement: StatementV2 }): string {
  const { digest, signature, statement } = signed
  const publicKey = recoverPublicKey(fromHex(digest.slice(2)), fromHex(signature.slice(2)))
  const address = toAddress(publicKey)
  failIf(address !== statement.address, `The signature is by ${address}, not by ${statement.address}.`)
  failIf(toHex(publicKey) !== statement.publicKey, 'The signature is by another public key than the statement’s.')
  return `The signature, with a low s, recovers to ${address}.`
}
