import {
  type Approval,
  type Hex,
  isPlainObject,
  type Opening,
  type ProofPayload,
  type ServiceError,
  type SignOffChainResponse,
  signDigestResponse,
  type WalletInfo,
} from '@countersign/protocol'
import { leaf, object } from '@countersign/protocol/schema'
import { concat, serializeSignature, sha256, toHex } from 'viem'
import { createError } from './errors.ts'
import type { OffChain } from './parseOffChain.ts'
import { mismatch, type VerifySignatureParameters, verifySignature } from './signTransaction.ts'

/** What `signMessage` and `signTypedData` answer. */
export type SignOffChainResult = {
  /** r ‖ s ‖ v, with v = 27 or 28. */
  signature: Hex
  attestationSlug: string
  /** Opens the proof, in which there is nothing but a commitment. Nobody else has it: once it is lost, nobody can open the proof. */
  opening: Opening
}

type VerifyOffChainParameters = {
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

type Half = Opening['content' | 'signature']

/** `ServiceClient.verifyOpening`. */
export function verifyOpening({ kind, txHash, slug }: ProofPayload, opening: Opening): void {
  if (kind !== 'off-chain' || txHash.toLowerCase() !== commitOpening(opening)) throw openingMismatch(slug)
}

function openingMismatch(slug: string): ServiceError {
  return createError('opening_mismatch', 'the opening is not of this signature', { details: `its proof is ${slug}` })
}

/**
 * As the protocol's `computeCommitment`, with viem's SHA-256: the protocol's own functions would bring twice as much code as there is
 * in this package. Undefined for what is no opening.
 */
function commitOpening({ content, signature }: Opening): Hex | undefined {
  try {
    return hash('', commit('-content', content, toHex), commit('-signature', signature, readSignature))
  } catch {
    // What was thrown could show some of it.
    return undefined
  }
}

/** A half that is withheld is there as its commitment. */
function commit(tag: string, half: Half, encode: (json: string) => Hex): Hex {
  if (typeof half === 'string') return toBytes(half)
  const { salt, ...shown } = half
  return hash(tag, toBytes(salt), encode(toSortedJson(shown)))
}

/** 32 bytes, in their one spelling: a longer salt would hold the beginning of what is hashed after it. */
function toBytes(text: string): Hex {
  return find(text, /^([0-9a-f]{64})$/)
}

/** Of its one member: what stood beside it would be in no hash. */
function readSignature(json: string): Hex {
  return find(json, /^{"signature":"0x([0-9a-f]{130})"}$/)
}

/** The digits in brackets. Throws a TypeError for what is no text, or another. */
function find(text: string, pattern: RegExp): Hex {
  return `0x${(text.match(pattern) as RegExpMatchArray)[1]}`
}

function hash(tag: string, ...parts: Hex[]): Hex {
  return sha256(concat([toHex(`countersign/opening${tag}/v1\0`), ...parts]))
}

/**
 * One text for each value, whatever the order of its members: that of RFC 8785 for what an opening can hold, where no number has a
 * fraction and no name begins with a digit.
 */
function toSortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isPlainObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )
}
