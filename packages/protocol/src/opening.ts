import { sha256 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, fromPrefixedHex, type Hex, isHex } from './hex.ts'
import { toContentHalf } from './openingContent.ts'
import * as preimages from './preimages.ts'
import { checked, either, ethereum, hex, type Infer, isOf, leaf, object } from './schema.ts'
import { parseSignature } from './signature.ts'
import { toPreimage } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

const contentHalf = toContentHalf(leaf<unknown>(() => true))
export type OpeningContent = Infer<typeof contentHalf>

/** The signature half: the signature's bytes, with 32 random bytes. */
const signatureHalf = object({ salt: hex(32), signature: checked(ethereum(65), isSignature) })
export type OpeningSignature = Infer<typeof signatureHalf>

/**
 * Opens the commitment of an off-chain signature. Each half can be shown without the other: a withheld half is replaced by its commitment,
 * 32 bytes of hex. The content half doesn't reveal the signature, and the signature half doesn't reveal the content.
 */
export const opening = checked(
  object({ content: either(hex(32), contentHalf), signature: either(hex(32), signatureHalf) }),
  ({ content, signature }) => typeof content !== 'string' || typeof signature !== 'string',
)
export type Opening = Infer<typeof opening>

/** Commits to the content half. */
export function commitContent({ salt, ...content }: OpeningContent): Bytes {
  return sha256(toPreimage(preimages.openingContent, { salt: toSalt(salt), content: toCanonicalJson(content) }))
}

/** Commits to the signature half. */
export function commitSignature({ salt, signature }: OpeningSignature): Bytes {
  return sha256(toPreimage(preimages.openingSignature, { salt: toSalt(salt), signature: toSignature(signature) }))
}

/**
 * The only public value of an off-chain signature: the commitment to both halves.
 *
 * @example
 * if (toHex(computeCommitment(opening)) !== subject.commitment) … // the opening belongs to another commitment
 */
export function computeCommitment({ content, signature }: Opening): Bytes {
  return sha256(
    toPreimage(preimages.opening, {
      content: typeof content === 'string' ? toHash('content', content) : commitContent(content),
      signature: typeof signature === 'string' ? toHash('signature', signature) : commitSignature(signature),
    }),
  )
}

function toSalt(salt: unknown): Bytes {
  if (!isHex(salt, 32)) throw malformed('salt')
  return fromHex(salt)
}

function toHash(name: string, text: string): Bytes {
  if (!isHex(text, 32)) throw malformed(name)
  return fromHex(text)
}

function toSignature(signature: string): Bytes {
  if (!isOf(signatureHalf.members.signature, signature)) throw malformed('signature')
  return fromPrefixedHex(signature)
}

function isSignature(signature: Hex): boolean {
  try {
    parseSignature(fromPrefixedHex(signature))
    return true
  } catch {
    return false
  }
}

export function malformed(details: string, cause?: unknown) {
  return new ServiceError<ProtocolErrorCode>('opening_malformed', 'malformed opening', { details, cause })
}
