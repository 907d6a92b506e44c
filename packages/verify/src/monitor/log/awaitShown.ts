import type { WitnessPolicy } from '@countersign/log'
import type { WitnessWord } from './askWitnesses.ts'
import { findCosignedSize } from './compareWitnesses.ts'
import { LogFault, withholds } from './logFault.ts'
import type { LogsMemory } from './logMemory.ts'
import type { SeenLog } from './readLog.ts'

export type AwaitShownDeps = {
  memory: Pick<LogsMemory, 'unshown'>
  /** Resolves after so long; false where the look is to end. */
  wait?: (ms: number) => Promise<boolean>
}

export type AwaitShownParameters = {
  /** As it was read just now. */
  log: SeenLog
  words: readonly WitnessWord[]
  policies: readonly WitnessPolicy[]
  /** Reads on from there. */
  readOn: (log: SeenLog) => Promise<SeenLog>
}

/** A service under load shows by then what was cosigned. */
const SHOWN_WITHIN_MS = 60_000
const PAUSE_MS = 2_000

/**
 * Reads on while a quorum of the witnesses has cosigned more of a log than it shows. Throws a `LogFault`. The time counts from when we
 * heard of that: a witness cosigns anew for those who ask, so that its time does not say how long the service has had it.
 */
export async function awaitShown(
  { memory, wait = async () => false }: AwaitShownDeps,
  { log: first, words, policies, readOn }: AwaitShownParameters,
): Promise<SeenLog> {
  const cosigned = { size: findCosignedSize(words, policies), waitedMs: 0 }
  const { origin } = first
  for (let log = first; ; log = await readOn(log)) {
    const earlier = memory.unshown.get(origin)
    const { size, waitedMs } = earlier !== undefined && earlier.size > log.size ? earlier : cosigned
    if (size <= log.size) {
      memory.unshown.delete(origin)
      return log
    }
    const ahead = `it shows ${log.size} entries, and its witnesses cosigned ${size}`
    if (waitedMs >= SHOWN_WITHIN_MS) throw withholds(ahead)
    const isOver = !(await wait(PAUSE_MS))
    memory.unshown.set(origin, { size, waitedMs: isOver ? waitedMs : waitedMs + PAUSE_MS })
    if (isOver) throw new LogFault('log-unavailable', `${ahead}; this look did not wait for those`)
  }
}
