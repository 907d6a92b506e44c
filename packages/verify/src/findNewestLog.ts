import {
  type Checkpoint,
  findCosignatures,
  isSatisfied,
  LogError,
  parseCheckpoint,
  parseNote,
  readQuorumTimes,
  type WitnessPolicy,
} from '@countersign/log'

/** The checkpoint of a note, and the time that these witnesses show. Undefined unless a quorum of them cosigned it. */
export function readCosigned(
  text: string,
  policy: WitnessPolicy,
): { checkpoint: Checkpoint; passedS: number } | undefined {
  try {
    const note = parseNote(text)
    const cosignatures = findCosignatures(note, policy.witnesses)
    const keys = cosignatures.map(({ witness }) => witness)
    if (!isSatisfied(policy, keys)) return undefined
    return { checkpoint: parseCheckpoint(note.text), passedS: readQuorumTimes(cosignatures, policy).passedS }
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

/** The origin of the log that a service writes now: the one whose newest checkpoint these witnesses cosigned last. */
export function findNewestLog(notes: readonly string[], policy: WitnessPolicy): string | undefined {
  const cosigned = notes.flatMap((text) => readCosigned(text, policy) ?? [])
  const [newest] = cosigned.toSorted((left, right) => right.passedS - left.passedS)
  return newest?.checkpoint.origin
}
