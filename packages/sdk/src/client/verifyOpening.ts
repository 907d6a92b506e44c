import { type Hex, isPlainObject, type Opening, type ProofPayload, type ServiceError } from '@countersign/protocol'
import { concat, sha256, stringToHex } from 'viem'
import { createError } from './errors.ts'

/** `ServiceClient.verifyOpening`. */
export function verifyOpening({ kind, txHash, slug }: ProofPayload, { content, signature }: Opening): void {
  let commitment: Hex | undefined
  try {
    commitment = hash('', commit('-content', content), commit('-signature', signature))
  } catch {
    // It is no opening. What was thrown could show some of it.
  }
  if (kind !== 'off-chain' || txHash.toLowerCase() !== commitment) throw openingMismatch(slug)
}

export function openingMismatch(slug: string): ServiceError {
  return createError('opening_mismatch', 'the opening is not of this signature', { details: `its proof is ${slug}` })
}

/**
 * As the protocol's `computeCommitment`, with viem's SHA-256: the protocol's own functions would bring twice as much code as there is
 * in this package. A half that is withheld is there as its commitment.
 */
function commit(tag: string, half: Opening['content' | 'signature']): Hex {
  if (typeof half === 'string') return `0x${half}`
  const { salt, ...shown } = half
  return hash(tag, `0x${salt}`, 'signature' in shown ? shown.signature : stringToHex(toSortedJson(shown)))
}

function hash(tag: string, ...parts: Hex[]): Hex {
  return sha256(concat([stringToHex(`countersign/opening${tag}/v1\0`), ...parts]))
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
