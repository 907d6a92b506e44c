import type { WitnessPolicy } from '@countersign/log'
import { equalBytes } from '@countersign/protocol'
import type { WitnessWord } from './askWitnesses.ts'
import type { LogSource } from './createLogSource.ts'
import { lies, withholds } from './logFault.ts'
import type { SeenLog } from './readLog.ts'
import { computeRoots } from './readTree.ts'

/** What was cosigned a moment ago may not be shown yet. */
const SHOWN_WITHIN_MS = 60_000

/**
 * Holds a log against what its witnesses say of it: each must have cosigned this history, and a quorum no more of it than is shown. Throws
 * a `LogFault`. Whether so many know of nothing more that there can be nothing: then the log is fresh, whenever it was cosigned.
 */
export async function compareWitnesses(
  source: LogSource,
  { log, words, policies, now }: CompareParameters,
): Promise<{ isFresh: boolean }> {
  const known = words.flatMap((word) => ('root' in word && word.size <= log.size ? [word] : []))
  const sizes = known.map(({ size }) => size)
  const roots = await computeRoots(source, { origin: log.origin, tree: log, sizes })
  for (const { host, size, root } of known) {
    if (equalBytes(roots.get(size) as Uint8Array, root)) continue
    throw lies(`it shows two histories: the witness at ${host} cosigned another tree of ${size} entries`)
  }
  const ahead = words.flatMap((word) =>
    'root' in word && word.size > log.size && now.getTime() - word.cosignedAtMs > SHOWN_WITHIN_MS ? [word.size] : [],
  )
  const quorum = Math.min(...policies.map((policy) => policy.quorum))
  const cosigned = ahead.toSorted((a, b) => b - a)[quorum - 1]
  if (cosigned !== undefined) throw withholds(`it shows ${log.size} entries, and its witnesses cosigned ${cosigned}`)
  return { isFresh: isEnough(words, { policies, size: log.size }) }
}

export type CompareParameters = {
  log: SeenLog
  words: readonly WitnessWord[]
  policies: readonly WitnessPolicy[]
  now: Date
}

/** So many know of no more than this size that the rest is no quorum of any policy. */
export function isEnough(
  words: readonly WitnessWord[],
  { policies, size }: { policies: readonly WitnessPolicy[]; size: number },
): boolean {
  const count = words.filter((word) => 'size' in word && word.size <= size).length
  return policies.length > 0 && policies.every(({ witnesses, quorum }) => witnesses.length - count < quorum)
}
