import {
  type Approval,
  type Hex,
  isPlainObject,
  leaf,
  type Opening,
  object,
  type SignOffChainResponse,
  signDigestResponse,
  type WalletInfo,
} from '@countersign/protocol'
import { serializeSignature } from 'viem'
import type { OffChain } from './parseOffChain.ts'
import { commitOpening, openingMismatch, toSortedJson } from './verifyOpening.ts'
import { mismatch, type VerifySignatureParameters, verifySignature } from './verifySignature.ts'

/** What `signMessage` and `signTypedData` answer. */
export type SignOffChainResult = {
  /** r ‖ s ‖ v, with v = 27 or 28. */
  signature: Hex
  attestationSlug: string
  /** Opens the proof, in which there is nothing but a commitment. Nobody else has it: once it is lost, nobody can open the proof. */
  opening: Opening
}

export type VerifyOffChainParameters = {
  wallet: Pick<WalletInfo, 'address'>
  /** With the approvals of a vault, where there are some. */
  asked: OffChain & { approvals?: readonly Approval[] }
  answer: SignOffChainResponse
}

/** What the opening must say is known here, so it is compared whole. */
export const offChainAnswer = object({ ...signDigestResponse.members, opening: leaf<Opening>(isPlainObject) })

/** The signature must be the wallet's over exactly what was asked for, and the opening must show exactly that. */
export async function verifyOffChain({ wallet, asked, answer }: VerifyOffChainParameters): Promise<SignOffChainResult> {
  const { signature, slug } = answer
  await verifyExact({ wallet, digest: asked.digest, ...answer })
  // Only the salts are news.
  const given = answer.opening as Record<keyof Opening, { salt?: string } | null | undefined>
  const opening = {
    content: { salt: given.content?.salt, ...asked },
    signature: { salt: given.signature?.salt, signature },
  } as Opening
  if (!commitOpening(opening) || toSortedJson(given) !== toSortedJson(opening)) throw openingMismatch(slug)
  return { signature, attestationSlug: slug, opening }
}

/** Contracts recover a signer only with v = 27 or 28, and a commitment is to one spelling. */
export async function verifyExact(parameters: VerifySignatureParameters): Promise<void> {
  const parts = await verifySignature(parameters)
  if (serializeSignature(parts) !== parameters.signature) throw mismatch('its v or spelling is unusual')
}
