import type { WitnessPolicy } from '@countersign/log'
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
  // Of a log that is there, an address that knows of none says nothing: it may be no witness at all.
  return { isFresh: isEnough(known, { policies, size: log.size }) }
}

export type CompareParameters = {
  log: SeenLog
  words: readonly WitnessWord[]
  policies: readonly WitnessPolicy[]
}

/** The largest tree that a quorum of each policy has cosigned, as a log must show it; 0 where too few of one were asked. */
export function findCosignedSize(words: readonly WitnessWord[], policies: readonly WitnessPolicy[]): number {
  const sizes = policies.map(({ witnesses, quorum }) => {
    const own = witnesses.map((witness) =>
      Math.max(0, ...words.map((word) => ('root' in word && word.witness === witness ? word.size : 0))),
    )
    return own.toSorted((a, b) => b - a)[quorum - 1] ?? 0
  })
  return Math.min(...sizes)
}

/** So many know of no more than this size that the rest is no quorum of any policy. Who knows of nothing does not say whose witness it is. */
export function isEnough(
  words: readonly WitnessWord[],
  { policies, size }: { policies: readonly WitnessPolicy[]; size: number },
): boolean {
  const known = words.flatMap((word) => ('size' in word && word.size <= size ? [word] : []))
  const isMet = ({ witnesses, quorum }: WitnessPolicy) => {
    const own = known.filter((word) => !('root' in word) || witnesses.includes(word.witness))
    const count = new Set(own.map((word) => ('root' in word ? word.witness : word.host))).size
    return witnesses.length - count < quorum
  }
  return policies.length > 0 && policies.every(isMet)
}
