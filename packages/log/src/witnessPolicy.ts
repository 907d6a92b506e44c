import { fromHex, isEd25519Key, isHex, isMajority, MAX_WITNESSES, toHex } from '@countersign/protocol/core'
import { LogError } from './errors.ts'
import type { Note, NoteSignature } from './note.ts'
import { computeKeyId, type NoteKey } from './noteKey.ts'
import { type VerifiedSignature, type VerifyEd25519, verifySignature } from './openNote.ts'

/**
 * Whose cosignatures count, and how many are enough. By their keys alone: the name of a witness is not under its signature, and it may
 * change.
 */
export type WitnessPolicy = {
  /** Ed25519 keys, 32 bytes of hex, each once. */
  witnesses: readonly string[]
  /** More than half of them: then two histories cannot both have their quorum unless a witness cosigns both. */
  quorum: number
}

/** A cosignature that counts. */
export type Cosignature = VerifiedSignature & { witness: string; timestampS: number }

export function assertWitnessPolicy(value: WitnessPolicy): void {
  const { witnesses, quorum } = value
  const isList = Array.isArray(witnesses) && witnesses.length >= 1 && witnesses.length <= MAX_WITNESSES
  if (!isList || new Set(witnesses).size !== witnesses.length)
    throw malformed(`1 to ${MAX_WITNESSES} witnesses, each once`)
  if (!witnesses.every((key) => isHex(key, 32) && isEd25519Key(fromHex(key)))) throw malformed('a key is not Ed25519')
  if (!isMajority(quorum, witnesses.length)) throw malformed('the quorum is not a majority of the witnesses')
}

/** Whether enough of a policy's witnesses are among these keys. Other keys count for nothing, and none counts twice. */
export function isSatisfied({ witnesses, quorum }: WitnessPolicy, keys: Iterable<string>): boolean {
  const given = new Set(keys)
  return witnesses.filter((witness) => given.has(witness)).length >= quorum
}

/**
 * The cosignatures of these witnesses below a note, in the order of the list; of several of one witness the newest. The keys are those of
 * a policy that was judged. Ids have four bytes, and a witness may look for a name under which its own is that of another: a line counts for
 * the key under which it holds, and spoils the note only if there is none.
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

/** What the times of a quorum's cosignatures say about the time that it is, in seconds. */
type QuorumTimes = {
  /** This time has passed: a whole quorum says so, and fewer cannot push it. */
  passedS: number
  /** The time that witnesses show, and that liars cannot hold back. No earlier than the other. */
  shownS: number
}

/**
 * Reads the times of cosignatures of which there is a quorum. Two quorums have 2q − n witnesses in common, so one fewer may lie, and of any
 * quorum n − q + 1 are honest: with the newest first, the time at place n − q is no earlier than all of theirs, and the one at place
 * 2q − n − 1 no later. Of the two the newer counts: more than n − q who date ahead could as well keep silent.
 */
export function readQuorumTimes(
  cosignatures: readonly { timestampS: number }[],
  { witnesses: { length }, quorum }: WitnessPolicy,
): QuorumTimes {
  const times = cosignatures.map(({ timestampS }) => timestampS).toSorted((left, right) => right - left)
  return { passedS: times[quorum - 1] ?? 0, shownS: times[Math.min(2 * quorum - length - 1, length - quorum)] ?? 0 }
}

/** By the first of these keys under which it holds; throws for the last where it holds under none. */
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
