import { type Hex, isPlainObject, type Opening, type ProofPayload, type ServiceError } from '@countersign/protocol'
import { concat, sha256, toHex } from 'viem'
import { createError } from './errors.ts'

type Half = Opening['content' | 'signature']

/** `ServiceClient.verifyOpening`. */
export function verifyOpening({ kind, txHash, slug }: ProofPayload, opening: Opening): void {
  if (kind !== 'off-chain' || txHash.toLowerCase() !== commitOpening(opening)) throw openingMismatch(slug)
}

export function openingMismatch(slug: string): ServiceError {
  return createError('opening_mismatch', 'the opening is not of this signature', { details: `its proof is ${slug}` })
}

/**
 * As the protocol's `computeCommitment`, with viem's SHA-256: the protocol's own functions would bring twice as much code as there is
 * in this package. Undefined for what is no opening.
 */
export function commitOpening({ content, signature }: Opening): Hex | undefined {
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
export function toSortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isPlainObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )
}
