import { sha256 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import type { OffChainContent } from './contents.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, type Hex, isHex, isLowerPrefixedHex, toHex } from './hex.ts'
import { isPrefixedHex } from './isPrefixedHex.ts'
import { isPlainObject, readMembers } from './plainObject.ts'
import * as preimages from './preimages.ts'
import { parseSignature } from './signature.ts'
import { parseStrictJson } from './strictJson.ts'
import { toPreimage } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** What was signed. */
export type OpeningContent = {
  /** 32 random bytes. Without them a reader of the commitment could try every likely message. */
  salt: string
  /** 32 bytes: the digest that `content` hashes to, and that was signed. */
  digest: Hex
  /** A vault's approvals, where its policy asked for some. */
  approvals?: readonly unknown[] | undefined
} & OffChainContent

/** The bytes of the signature. */
export type OpeningSignature = {
  /** 32 random bytes. */
  salt: string
  /** 65 bytes: r ‖ s ‖ v. */
  signature: Hex
}

/**
 * What opens the commitment of an off-chain signature. Either half can be shown without the other: one that is withheld is
 * replaced by its own commitment, 32 bytes of hex. To show the content alone gives nobody a signature to use, and to show the
 * signature alone says nothing about the content.
 */
export type Opening = { content: OpeningContent | string; signature: OpeningSignature | string }

/** A body of 32 KiB, with the approvals of a vault and what escaping may add. */
export const MAX_OPENING_BYTES = 262_144
/** The content may be nested 16 deep, inside four levels of its own. */
const MAX_OPENING_DEPTH = 24

/** Commits to the content half. */
export function commitContent({ salt, ...content }: OpeningContent): Bytes {
  return sha256(toPreimage(preimages.openingContent, { salt: toSalt(salt), content: toCanonicalJson(content) }))
}

/** Commits to the signature half. */
export function commitSignature({ salt, signature }: OpeningSignature): Bytes {
  return sha256(toPreimage(preimages.openingSignature, { salt: toSalt(salt), signature: toSignature(signature) }))
}

/**
 * The one public value of an off-chain signature: the commitment to both halves.
 *
 * @example
 * if (toHex(computeCommitment(opening)) !== subject.commitment) … // it opens something else
 */
export function computeCommitment({ content, signature }: Opening): Bytes {
  return sha256(
    toPreimage(preimages.opening, {
      content: typeof content === 'string' ? toHash('content', content) : commitContent(content),
      signature: typeof signature === 'string' ? toHash('signature', signature) : commitSignature(signature),
    }),
  )
}

/** The opening with one half replaced by its commitment, to show the other alone. */
export function withholdHalf(opening: Opening, half: keyof Opening): Opening {
  const { content, signature } = opening
  if (half === 'content')
    return typeof content === 'string' ? opening : { content: toHex(commitContent(content)), signature }
  return typeof signature === 'string' ? opening : { content, signature: toHex(commitSignature(signature)) }
}

/** Narrows to an opening of at least one half, each member in its one spelling. Whether the content hashes to its digest is not checked here. */
export function assertOpening(value: unknown): asserts value is Opening {
  const { content, signature } = readMembers(value, { required: ['content', 'signature'] }, malformed)
  if (typeof content === 'string' && typeof signature === 'string') throw malformed('neither half is shown')
  if (typeof content === 'string') toHash('content', content)
  else assertContent(content)
  if (typeof signature === 'string') toHash('signature', signature)
  else {
    const half = readMembers(signature, { required: ['salt', 'signature'] }, malformed)
    toSalt(half.salt)
    toSignature(half.signature)
  }
}

/** Parses an opening. White space, the order of members and escapes in strings don't matter: each half is hashed in canonical form. */
export function parseOpening(bytes: Uint8Array): Opening {
  let value: unknown
  try {
    value = parseStrictJson(bytes, { maxLength: MAX_OPENING_BYTES, maxDepth: MAX_OPENING_DEPTH })
  } catch (cause) {
    throw malformed(cause instanceof ServiceError ? cause.code : 'not JSON', cause)
  }
  assertCanonicalNumbers(new TextDecoder().decode(bytes))
  assertOpening(value)
  return value
}

/** `31337.0` and `3.1337e4` parse to the same number as `31337`, and `9007199254740993` is rounded. `text` is valid JSON. */
function assertCanonicalNumbers(text: string): void {
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g)) {
    if (!token.startsWith('"') && String(Number(token)) !== token) throw malformed('a number is not in canonical form')
  }
}

function assertContent(value: unknown): void {
  const required = ['salt', 'kind', 'digest', 'content'] as const
  const half = readMembers(value, { required, optional: ['approvals'] }, malformed)
  toSalt(half.salt)
  if (!isLowerPrefixedHex(half.digest, 32)) throw malformed('digest')
  if (half.approvals !== undefined && !Array.isArray(half.approvals)) throw malformed('approvals')
  if (half.kind === 'message') {
    const { message } = readMembers(half.content, { required: ['message'] }, malformed)
    // In the spelling that was signed, of either case: the commitment is to that spelling.
    if (!isPrefixedHex(message)) throw malformed('message')
    return
  }
  if (half.kind !== 'typed-data') throw malformed('kind')
  const members = ['domain', 'types', 'primaryType', 'message'] as const
  const { domain, types, primaryType, message } = readMembers(half.content, { required: members }, malformed)
  const isTyped = isPlainObject(domain) && isPlainObject(types) && isPlainObject(message)
  if (!isTyped || typeof primaryType !== 'string') throw malformed('typed data')
}

function toSalt(salt: unknown): Bytes {
  if (!isHex(salt, 32)) throw malformed('salt')
  return fromHex(salt)
}

function toHash(name: string, text: string): Bytes {
  if (!isHex(text, 32)) throw malformed(name)
  return fromHex(text)
}

function toSignature(signature: unknown): Bytes {
  if (!isLowerPrefixedHex(signature, 65)) throw malformed('signature')
  const bytes = fromHex(signature.slice(2))
  try {
    parseSignature(bytes)
  } catch (cause) {
    throw malformed('signature', cause)
  }
  return bytes
}

function malformed(details: string, cause?: unknown) {
  return new ServiceError<ProtocolErrorCode>('opening_malformed', 'malformed opening', { details, cause })
}
