import { sha256 } from '@noble/hashes/sha2.js'
import { approval } from './approval.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { messageContent } from './contents.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { fromHex, fromPrefixedHex, type Hex, isHex, toHex } from './hex.ts'
import * as preimages from './preimages.ts'
import {
  checked,
  either,
  ethereum,
  hex,
  type Infer,
  isOf,
  leaf,
  list,
  literal,
  object,
  optional,
  parse,
  type Schema,
} from './schema.ts'
import { parseSignature } from './signature.ts'
import { parseStrictJson } from './strictJson.ts'
import { toPreimage } from './tags.ts'
import { typedData } from './typedData.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** What was signed. `approvals` are a vault's, where its policy asked for some. */
// @__NO_SIDE_EFFECTS__
function toContentHalf<Item>(approvals: Schema<Item>) {
  const shared = {
    /** 32 random bytes. Without them a reader of the commitment could try every likely message. */
    salt: hex(32),
    /** The digest that `content` hashes to, and that was signed. */
    digest: ethereum(32),
    approvals: optional(list(approvals)),
  }
  return either(
    // In the spelling that was signed, of either case: the commitment is to that spelling.
    object({ ...shared, kind: literal('message'), content: messageContent }),
    object({ ...shared, kind: literal('typed-data'), content: typedData }),
  )
}

const contentHalf = toContentHalf(leaf<unknown>(() => true))
export type OpeningContent = Infer<typeof contentHalf>

/** The bytes of the signature, with 32 random bytes. */
const signatureHalf = object({ salt: hex(32), signature: checked(ethereum(65), isSignature) })
export type OpeningSignature = Infer<typeof signatureHalf>

/**
 * What opens the commitment of an off-chain signature. Either half can be shown without the other: one that is withheld is
 * replaced by its own commitment, 32 bytes of hex. To show the content alone gives nobody a signature to use, and to show the
 * signature alone says nothing about the content.
 */
const opening = checked(
  object({ content: either(hex(32), contentHalf), signature: either(hex(32), signatureHalf) }),
  ({ content, signature }) => typeof content !== 'string' || typeof signature !== 'string',
)
export type Opening = Infer<typeof opening>

/** The same as the service answers it, with both halves. */
export const shownOpening = object({
  content: toContentHalf(approval),
  signature: object({ salt: hex(32), signature: ethereum(65) }),
}) as Schema as Schema<Opening>

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
  parse(opening, value, malformed)
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

function malformed(details: string, cause?: unknown) {
  return new ServiceError<ProtocolErrorCode>('opening_malformed', 'malformed opening', { details, cause })
}
