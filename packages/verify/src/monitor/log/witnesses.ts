import {
  hashOrigin,
  isSatisfied,
  LogError,
  MAX_WITNESS_STATEMENT_BYTES,
  type Note,
  openNote,
  openWitnessStatement,
  parseVkey,
  toStatementPath,
  type WitnessPolicy,
} from '@countersign/log'
import { equalBytes, toHex } from '@countersign/protocol'
import { VerifierError } from '../../errors.ts'
import type { FetchBytes } from '../../fetchBytes.ts'
import { mapConcurrently } from '../mapConcurrently.ts'
import type { LogSource } from './createLogSource.ts'
import { LogFault, lies, withholds } from './createLogSource.ts'
import type { LogsMemory } from './logMemory.ts'
import type { SeenLog } from './readLog.ts'
import { computeRoots } from './readTree.ts'

/** A witness's signed statement about a log, for this request. */
export type WitnessAnswer =
  | { host: string; witness: string; size: number; root: Uint8Array }
  /** It has cosigned no checkpoint. */
  | { host: string; witness: string; size: 0 }
  | { host: string; kind: 'witness-unavailable' | 'witness-contradicts'; fault: string }

export type AskWitnessesParameters = {
  urls: readonly string[]
  origin: string
  /** Verifier key of the log, if known. */
  key: string | undefined
  witnesses: readonly string[]
}

/** Asks witnesses directly, not through the service, for the newest checkpoint that they cosigned (`log-v1.md` §4). Asks each address once. */
export async function askWitnesses(
  { fetchBytes, now }: { fetchBytes: FetchBytes; now: () => Date },
  { urls, origin, key, witnesses }: AskWitnessesParameters,
): Promise<WitnessAnswer[]> {
  return mapConcurrently(urls, async (base): Promise<WitnessAnswer> => {
    const { host } = new URL(base)
    const unavailable = (fault: string) => ({ host, kind: 'witness-unavailable', fault }) as const
    const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
    const url = `${base}${toStatementPath({ originHash: hashOrigin(origin), nonce })}`
    try {
      const bytes = await fetchBytes({ url, maxBytes: MAX_WITNESS_STATEMENT_BYTES, accept: 'application/json' })
      const { witness, known } = openWitnessStatement(bytes, { origin, nonce, witnesses, now: now() })
      if (known === undefined) return { host, witness, size: 0 }
      const { size, root, note } = known
      if (key !== undefined && !isSigned(note, key)) {
        const fault = `cosigned ${size} entries that the key of the log did not sign`
        return { host, kind: 'witness-contradicts', fault }
      }
      return { host, witness, size, root }
    } catch (error) {
      if (error instanceof VerifierError) return unavailable(error.details ?? error.message)
      if (error instanceof LogError) return unavailable(`${error.message}: ${error.details}`)
      throw error
    }
  })
}

/**
 * A witness could invent a history to make an honest log look false, so the log's key must have signed it. But the service states that key,
 * and could state a false one to discredit honest witnesses. So an unsigned history is evidence against neither of them.
 */
function isSigned(note: Note, key: string): boolean {
  try {
    return openNote(note, [parseVkey(key)]).verified.length > 0
  } catch (error) {
    if (error instanceof LogError) return false
    throw error
  }
}

/**
 * Compares a log with the trees that its witnesses cosigned, which must have the same history. Throws a `LogFault`. `isFresh` if so many
 * witnesses cosigned no more that the others can't form a quorum. The log is then current, even with an old checkpoint.
 */
export async function compareWitnesses(
  source: LogSource,
  { log, answers, policies }: CompareParameters,
): Promise<{ isFresh: boolean }> {
  const known = answers.flatMap((answer) => ('root' in answer && answer.size <= log.size ? [answer] : []))
  const sizes = known.map(({ size }) => size)
  const roots = await computeRoots(source, { origin: log.origin, tree: log, sizes })
  for (const { host, size, root } of known) {
    if (equalBytes(roots.get(size) as Uint8Array, root)) continue
    throw lies(`it shows two histories: the witness at ${host} cosigned another tree of ${size} entries`)
  }
  // A witness without a checkpoint of an existing log may be new.
  const informed = answers.filter((answer) => 'root' in answer)
  return { isFresh: policies.length > 0 && findSilent(informed, { policies, size: log.size }).length === 0 }
}

export type CompareParameters = {
  log: SeenLog
  answers: readonly WitnessAnswer[]
  policies: readonly WitnessPolicy[]
}

/** The largest tree that a quorum of each policy has cosigned, and that the log must show. 0 if too few witnesses of a policy responded. */
export function findCosignedSize(answers: readonly WitnessAnswer[], policies: readonly WitnessPolicy[]): number {
  const ordered = answers.flatMap((answer) => ('root' in answer ? [answer] : [])).toSorted((a, b) => b.size - a.size)
  const witnesses = ordered.map(({ witness }) => witness)
  const last = ordered.find((_, index) =>
    policies.every((policy) => isSatisfied(policy, witnesses.slice(0, index + 1))),
  )
  return last?.size ?? 0
}

/** The size up to which a witness cosigned, from a cosignature. */
export type CosignedSize = { witness: string; size: number }

/**
 * The witnesses of the first unsatisfied policy: they are enough for a quorum, but did not state that they cosigned no more than this size.
 * Empty if every policy is satisfied.
 */
export function findSilent(
  answers: readonly (WitnessAnswer | CosignedSize)[],
  { policies, size }: { policies: readonly WitnessPolicy[]; size: number },
): readonly string[] {
  const stated = answers.flatMap((answer) => ('size' in answer ? [answer] : []))
  const isAnswered = (witness: string) => {
    const own = stated.filter((answer) => answer.witness === witness)
    // A witness may give different answers at two addresses.
    return own.length > 0 && own.every((answer) => answer.size <= size)
  }
  for (const policy of policies) {
    const silent = policy.witnesses.filter((witness) => !isAnswered(witness))
    if (isSatisfied(policy, silent)) return silent
  }
  return []
}

export type AwaitShownDeps = {
  memory: Pick<LogsMemory, 'unshown'>
  /** Resolves after this time; false if the run should end. */
  wait?: (ms: number) => Promise<boolean>
}

export type AwaitShownParameters = {
  /** The log as just read. */
  log: SeenLog
  answers: readonly WitnessAnswer[]
  policies: readonly WitnessPolicy[]
  /** Continues reading from this state. */
  readOn: (log: SeenLog) => Promise<SeenLog>
}

/** Even a service under load shows a cosigned checkpoint within this time. */
const SHOWN_WITHIN_MS = 60_000
const PAUSE_MS = 2_000

/**
 * Continues reading while a quorum of the witnesses has cosigned more of a log than it shows. Throws a `LogFault`. The time counts from the
 * monitor's first sight of the larger size: a witness cosigns again for every request, so its timestamp doesn't show how long the service has
 * had it.
 */
export async function awaitShown(
  { memory, wait = async () => false }: AwaitShownDeps,
  { log: first, answers, policies, readOn }: AwaitShownParameters,
): Promise<SeenLog> {
  const cosigned = { size: findCosignedSize(answers, policies), waitedMs: 0 }
  const { origin } = first
  for (let log = first; ; log = await readOn(log)) {
    const earlier = memory.unshown.get(origin)
    const { size, waitedMs } = earlier !== undefined && earlier.size > log.size ? earlier : cosigned
    if (size <= log.size) {
      memory.unshown.delete(origin)
      return log
    }
    const ahead = `it shows ${log.size} entries, but its witnesses cosigned ${size}`
    if (waitedMs >= SHOWN_WITHIN_MS) throw withholds(ahead)
    const isOver = !(await wait(PAUSE_MS))
    memory.unshown.set(origin, { size, waitedMs: isOver ? waitedMs : waitedMs + PAUSE_MS })
    if (isOver) throw new LogFault('log-unavailable', `${ahead}; this run did not wait for them`)
  }
}
