import { isSatisfied, type WitnessPolicy } from '@countersign/log'
import { equalBytes } from '@countersign/protocol'
import type { WitnessWord } from './askWitnesses.ts'
import type { LogSource } from './createLogSource.ts'
import { lies } from './logFault.ts'
import type { SeenLog } from './readLog.ts'
import { computeRoots } from './readTree.ts'

/**
 * Holds a log against what its witnesses say of it: each must have cosigned this history. Throws a `LogFault`. Whether so many know of
 * nothing more that there can be nothing: then the log is fresh, whenever it was cosigned.
 */
export async function compareWitnesses(
  source: LogSource,
  { log, words, policies }: CompareParameters,
): Promise<{ isFresh: boolean }> {
  const known = words.flatMap((word) => ('root' in word && word.size <= log.size ? [word] : []))
  const sizes = known.map(({ size }) => size)
  const roots = await computeRoots(source, { origin: log.origin, tree: log, sizes })
  for (const { host, size, root } of known) {
    if (equalBytes(roots.get(size) as Uint8Array, root)) continue
    throw lies(`it shows two histories: the witness at ${host} cosigned another tree of ${size} entries`)
  }
  // A witness that has no checkpoint of an existing log may be new.
  const informed = words.filter((word) => 'root' in word)
  return { isFresh: policies.length > 0 && findSilent(informed, { policies, size: log.size }).length === 0 }
}

export type CompareParameters = {
  log: SeenLog
  words: readonly WitnessWord[]
  policies: readonly WitnessPolicy[]
}

/** The largest tree that a quorum of each policy has cosigned, as a log must show it; 0 where too few of one were asked. */
export function findCosignedSize(words: readonly WitnessWord[], policies: readonly WitnessPolicy[]): number {
  const ordered = words.flatMap((word) => ('root' in word ? [word] : [])).toSorted((a, b) => b.size - a.size)
  const witnesses = ordered.map(({ witness }) => witness)
  const last = ordered.find((_, index) =>
    policies.every((policy) => isSatisfied(policy, witnesses.slice(0, index + 1))),
  )
  return last?.size ?? 0
}

/** The size up to which a witness cosigned, by a cosignature. */
export type Cosigned = { witness: string; size: number }

/** The witnesses of the first policy that is not met: they did not state that they cosigned no more than this size, and are enough for a quorum. Empty where every policy is met. */
export function findSilent(
  words: readonly (WitnessWord | Cosigned)[],
  { policies, size }: { policies: readonly WitnessPolicy[]; size: number },
): readonly string[] {
  const stated = words.flatMap((word) => ('size' in word ? [word] : []))
  const isAnswered = (witness: string) => {
    const own = stated.filter((word) => word.witness === witness)
    // A witness may give different answers at two addresses.
    return own.length > 0 && own.every((word) => word.size <= size)
  }
  for (const policy of policies) {
    const silent = policy.witnesses.filter((witness) => !isAnswered(witness))
    if (isSatisfied(policy, silent)) return silent
  }
  return []
}
