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
import { mapSome } from '../mapSome.ts'
import type { LogSource } from './createLogSource.ts'
import { LogFault, lies, withholds } from './createLogSource.ts'
import type { LogsMemory } from './logMemory.ts'
import type { SeenLog } from './readLog.ts'
import { computeRoots } from './readTree.ts'

/** A witness's signed statement about a log, for this request. */
export type WitnessWord =
  | { host: string; witness: string; size: number; root: Uint8Array }
  /** It has cosigned no checkpoint. */
  | { host: string; witness: string; size: 0 }
  | { host: string; kind: 'witness-unavailable' | 'witness-contradicts'; fault: string }

export type AskWitnessesParameters = {
  urls: readonly string[]
  origin: string
  /** Verifier key of the log, as far as it is known. */
  key: string | undefined
  witnesses: readonly string[]
}

/** Asks witnesses directly, not through the service, for the newest checkpoint that they cosigned (`log-v1.md` §4). Asks each address once. */
export async function askWitnesses(
  { fetchBytes, now }: { fetchBytes: FetchBytes; now: () => Date },
  { urls, origin, key, witnesses }: AskWitnessesParameters,
): Promise<WitnessWord[]> {
  return mapSome(urls, async (base): Promise<WitnessWord> => {
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
 * One witness could make up a history, and have an honest log called a liar. But the key is the service's word, and it could name a false
 * one to have honest witnesses passed over: so what the key did not sign is evidence against neither of them alone.
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
