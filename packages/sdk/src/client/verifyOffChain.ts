import {
  type Approval,
  type Hex,
  isPlainObject,
  type Opening,
  type ProofPayload,
  type ServiceError,
  type SignOffChainResponse,
  signDigestResponse,
  type VaultBudget,
  type WalletInfo,
} from '@countersign/protocol'
import { leaf, object } from '@countersign/protocol/schema'
import { concat, serializeSignature, sha256, toHex } from 'viem'
import { createError } from './errors.ts'
import type { OffChain } from './parseOffChain.ts'
import { mismatch, type VerifySignatureParameters, verifySignature } from './signTransaction.ts'

/** The result of `signMessage` and `signTypedData`. */
export type SignOffChainResult = {
  /** r ‖ s ‖ v, with v = 27 or 28. */
  signature: Hex
  attestationSlug: string
  /** Reveals what the proof commits to. The service keeps no copy, so store it. */
  opening: Opening
}

/** An off-chain request. A vault's has approvals, if its rule needs some, and the amounts counted against budgets. */
export type SentOffChain = OffChain & { approvals?: readonly Approval[] | undefined; budget?: VaultBudget | undefined }

type VerifyOffChainParameters = {
  wallet: Pick<WalletInfo, 'address'>
  /** With the approvals, if a vault signs. */
  sent: SentOffChain
  answer: SignOffChainResponse
}

/** The opening is only checked to be an object, because `verifyOffChain` compares all of it. */
export const offChainAnswer = object({ ...signDigestResponse.members, opening: leaf<Opening>(isPlainObject) })

/** Throws unless the signature is the wallet's over exactly this request, and the opening shows exactly that. */
export async function verifyOffChain({ wallet, sent, answer }: VerifyOffChainParameters): Promise<SignOffChainResult> {
  const { signature, slug } = answer
  await verifyExact({ wallet, digest: sent.digest, ...answer })
  // Only the salts come from the service.
  const returned = answer.opening as Record<keyof Opening, { salt?: string } | null | undefined>
  const opening = {
    content: { salt: returned.content?.salt, ...sent },
    signature: { salt: returned.signature?.salt, signature },
  } as Opening
  if (!commitOpening(opening) || toSortedJson(returned) !== toSortedJson(opening)) throw openingMismatch(slug)
  return { signature, attestationSlug: slug, opening }
}

/** With the counted amounts, which come from the service. Not in `verifyOffChain`, because only vaults have budgets. */
export function withBudget(sent: SentOffChain, { opening }: SignOffChainResponse): SentOffChain {
  const { budget } = isPlainObject(opening.content) ? opening.content : {}
  return budget === undefined ? sent : { ...sent, budget }
}

/** Requires v = 27 or 28, as contracts do, and the one spelling that the commitment covers. */
export async function verifyExact(parameters: VerifySignatureParameters): Promise<void> {
  const parts = await verifySignature(parameters)
  if (serializeSignature(parts) !== parameters.signature) throw mismatch('its v is unusual')
}

type Half = Opening['content' | 'signature']

/** `ServiceClient.verifyOpening`. */
export function verifyOpening({ kind, txHash, slug }: ProofPayload, opening: Opening): void {
  if (kind !== 'off-chain' || txHash.toLowerCase() !== commitOpening(opening)) throw openingMismatch(slug)
}

function openingMismatch(slug: string): ServiceError {
  return createError('opening_mismatch', 'wrong opening', { details: `proof ${slug}` })
}

/**
 * The protocol's `computeCommitment` with viem's SHA-256, because the protocol's own functions would triple the size of this package.
 * Undefined for an invalid opening.
 */
function commitOpening({ content, signature }: Opening): Hex | undefined {
  try {
    return hash('', commit('-content', content, toHex), commit('-signature', signature, readSignature))
  } catch {
    // The error could show a part of the opening.
    return undefined
  }
}

/** A withheld half is a string: its commitment. */
function commit(tag: string, half: Half, encode: (json: string) => Hex): Hex {
  if (typeof half === 'string') return toBytes(half)
  const { salt, ...shown } = half
  return hash(tag, toBytes(salt), encode(toSortedJson(shown)))
}

/** Exactly 32 bytes: a longer salt could contain the start of the data hashed after it. */
function toBytes(text: string): Hex {
  return find(text, /^([0-9a-f]{64})$/)
}

/** Rejects other members, because the hash wouldn't cover them. */
function readSignature(json: string): Hex {
  return find(json, /^{"signature":"0x([0-9a-f]{130})"}$/)
}

/** The first group of the match. Throws a TypeError if there is no match. */
function find(text: string, pattern: RegExp): Hex {
  return `0x${(text.match(pattern) as RegExpMatchArray)[1]}`
}

function hash(tag: string, ...parts: Hex[]): Hex {
  return sha256(concat([toHex(`countersign/opening${tag}/v1\0`), ...parts]))
}

/**
 * Canonical JSON. Equals RFC 8785 for the values of an opening, where no number has a fraction and no name begins with a digit.
 */
function toSortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isPlainObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )
}
