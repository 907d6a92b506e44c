import { fromHex, isEd25519Key, isHex, isMajority, MAX_WITNESSES, toHex } from '@countersign/protocol/core'
import { LogError } from './errors.ts'
import type { Note, NoteSignature } from './note.ts'
import { computeKeyId, type NoteKey } from './noteKey.ts'
import { type VerifiedSignature, type VerifyEd25519, verifySignature } from './openNote.ts'

/**
 * The witnesses whose cosignatures count, and their quorum. Witnesses are identified only by key, because the signature doesn't cover the
 * name,
 * which may change.
 */
export type WitnessPolicy = {
  /** Ed25519 keys, 32 bytes of hex, without duplicates. */
  witnesses: readonly string[]
  /** A majority of them. Two histories can't both have a quorum unless a witness cosigns both. */
  quorum: number
}

/** A valid cosignature of a witness. */
export type Cosignature = VerifiedSignature & { witness: string; timestampS: number }

export function assertWitnessPolicy(value: WitnessPolicy): void {
  const { witnesses, quorum } = value
  const isList = Array.isArray(witnesses) && witnesses.length >= 1 && witnesses.length <= MAX_WITNESSES
  if (!isList || new Set(witnesses).size !== witnesses.length)
    throw malformed(`expected 1 to ${MAX_WITNESSES} different witnesses`)
  if (!witnesses.every((key) => isHex(key, 32) && isEd25519Key(fromHex(key)))) throw malformed('a key is not Ed25519')
  if (!isMajority(quorum, witnesses.length)) throw malformed('the quorum is not a majority of the witnesses')
}

/** Whether the keys include a quorum of the policy's witnesses. Ignores other keys and duplicates. */
export function isSatisfied({ witnesses, quorum }: WitnessPolicy, keys: Iterable<string>): boolean {
  const given = new Set(keys)
  return witnesses.filter((witness) => given.has(witness)).length >= quorum
}

/**
 * The cosignatures of these witnesses below a note, in the order of the list, each witness's newest. The keys must come from a checked
 * policy.
 * Key IDs have only four bytes, and a witness may choose a name that gives it another's ID. So a line counts for the first key that verifies
 * it, and fails only if none does.
 */
export function findCosignatures(
  { text, signatures }: Note,
  witnesses: readonly string[],
  verify?: VerifyEd25519,
): Cosignature[] {
  const publicKeys = witnesses.map((witness) => fromHex(witness))
  const newest = new Map<string, Cosignature>()
  for (const signature of signatures) {
    const keys = publicKeys.flatMap((publicKey) => {
      const key = { name: signature.name, type: 'cosignature-ed25519', publicKey } as const
      return computeKeyId(key) === signature.keyId ? [{ ...key, id: signature.keyId }] : []
    })
    if (keys.length === 0) continue
    const verified = verifyByOne(keys, text, signature, verify)
    const witness = toHex(verified.key.publicKey)
    const timestampS = verified.timestampS ?? 0
    const earlier = newest.get(witness)
    if (earlier === undefined || earlier.timestampS < timestampS)
      newest.set(witness, { ...verified, witness, timestampS })
  }
  return witnesses.flatMap((witness) => newest.get(witness) ?? [])
}

/** Bounds on the current time from a quorum's cosignatures, in seconds. */
type QuorumTimes = {
  /** A time that has passed: a whole quorum says so, and fewer witnesses can't push it forward. */
  passedS: number
  /** The time that witnesses show, which liars can't hold back. Never earlier than the other. */
  shownS: number
}

/**
 * Reads the times of a quorum's cosignatures. Two quorums have 2q − n witnesses in common, so one fewer may lie, and n − q + 1 of any
 * quorum are honest. With the newest first, the time at index n − q is not earlier than the oldest honest one, and the time at index 2q − n −
 * 1 is
 * not later than the newest honest one. Uses the newer of the two: more than n − q liars could withhold their cosignatures anyway.
 */
export function readQuorumTimes(
  cosignatures: readonly { timestampS: number }[],
  { witnesses: { length }, quorum }: WitnessPolicy,
): QuorumTimes {
  const times = cosignatures.map(({ timestampS }) => timestampS).toSorted((left, right) => right - left)
  return { passedS: times[quorum - 1] ?? 0, shownS: times[Math.min(2 * quorum - length - 1, length - quorum)] ?? 0 }
}

/** Returns the cosignature by the first of these keys that verifies it. Throws the last key's error if none does. */
function verifyByOne(
  keys: readonly NoteKey[],
  text: string,
  signature: NoteSignature,
  verify: VerifyEd25519 | undefined,
): VerifiedSignature {
  const [key, ...others] = keys as [NoteKey, ...NoteKey[]]
  try {
    return verifySignature(key, text, signature, verify)
  } catch (error) {
    if (!(error instanceof LogError) || others.length === 0) throw error
    return verifyByOne(others, text, signature, verify)
  }
}

function malformed(details: string) {
  return new LogError('witness_policy_malformed', 'malformed witness policy', { details })
}
