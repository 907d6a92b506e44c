import {
  type DrandWitness,
  type EntropySetting,
  type EntropyWitness,
  fromHex,
  type Hex,
  MAX_SAMPLE_AGE_MS,
  parseTimestamp,
  type SignItemError,
  toEntropyMessage,
  verifyDrandWitness,
} from '@countersign/protocol/core'
import { isEd25519Signature } from '@countersign/service/ed25519'
import type { Time } from '../time/time.ts'
import { toFlatJson } from './toFlatJson.ts'

/** The use of a sample. An off-chain signature uses its sample once, because it can't be repeated. */
export type SampleUse = { kind: 'transaction' | 'authorization'; keyId: string; digest: Hex } | { kind: 'off-chain' }

type SampleFault = Extract<SignItemError['error'], `entropy_${string}`>

export type Samples = {
  /**
   * Verifies a sample and reserves it for this use: no other use gets it in this boot. A beacon's round is shared. Returns why it can't be
   * used, or undefined.
   */
  use(witness: EntropyWitness | DrandWitness, use: SampleUse): SampleFault | undefined
  /** The source of a sample that `use` has accepted. */
  findSource(witness: EntropyWitness | DrandWitness): EntropySetting | undefined
}

/** By value: statements name nothing else of a sample. */
type Known = { use: string | undefined; timestampMs: number }

/** Some thousands per second, for as long as samples are remembered. */
const MAX_KNOWN = 524_288
/** A minute has twenty. */
const MAX_ROUNDS = 64
const UNSIGNED_KEY = '00'.repeat(32)

/**
 * Verifies samples against the sources in the settings, and remembers the use of each until it is too old to be accepted. A signed sample
 * also proves a time.
 */
export function createSamples(deps: {
  sources: readonly EntropySetting[]
  time: Time
  /** The most samples to remember. */
  limit?: number
}): Samples {
  const { time, limit = MAX_KNOWN } = deps
  const satellites = deps.sources.filter((source) => source.kind === 'satellite')
  const keys = new Map(satellites.map(({ key }) => [key, fromHex(key)]))
  const unsigned = deps.sources.find(({ kind }) => kind === 'unsigned')
  const beacons = deps.sources.filter((source) => source.kind === 'drand')
  /** The beacon of each verified round, by everything that the verification covers. */
  const rounds = new Map<string, EntropySetting>()
  const known = new Map<string, Known>()
  /** Values by the second of their samples, to find old ones without a search. */
  const seconds = new Map<number, Set<string>>()
  let forgottenUntil = Number.NEGATIVE_INFINITY

  function oldest(): number {
    return time.floor() - MAX_SAMPLE_AGE_MS
  }

  function isInTime(timestampMs: number): boolean {
    return timestampMs >= oldest() && timestampMs <= time.latestSample()
  }

  /** A pairing takes tens of milliseconds, and each round needs only one. */
  function findBeacon(witness: DrandWitness): EntropySetting | undefined {
    const { source: _, ...signed } = witness
    const round = toFlatJson(signed)
    const known = rounds.get(round)
    if (known !== undefined) return known
    const beacon = beacons.find((one) => verifyDrandWitness(one, witness))
    if (beacon === undefined) return undefined
    if (rounds.size >= MAX_ROUNDS) rounds.clear()
    rounds.set(round, beacon)
    return beacon
  }

  /** Checks the time first, because that is cheap. */
  function useRound(witness: DrandWitness, timestampMs: number): SampleFault | undefined {
    if (!isInTime(timestampMs) || findBeacon(witness) === undefined) return 'entropy_refused'
    time.raiseBySample(timestampMs)
    return undefined
  }

  function remember(valueHex: string, entry: Known) {
    const earlier = known.get(valueHex)
    if (earlier !== undefined) seconds.get(toSecond(earlier.timestampMs))?.delete(valueHex)
    const second = toSecond(entry.timestampMs)
    const values = seconds.get(second) ?? new Set()
    seconds.set(second, values.add(valueHex))
    known.set(valueHex, entry)
  }

  function forget() {
    const until = toSecond(oldest())
    // If the floor is behind, many seconds remain.
    if (until <= forgottenUntil) return
    forgottenUntil = until
    for (const [second, values] of seconds) {
      if (second >= until) continue
      seconds.delete(second)
      for (const value of values) known.delete(value)
    }
  }

  return {
    findSource(witness) {
      if ('kind' in witness) return findBeacon(witness)
      return satellites.find(({ key }) => key === witness.publicKey) ?? unsigned
    },

    use(witness, use) {
      const timestampMs = parseTimestamp(witness.timestamp)
      if (timestampMs === undefined) return 'entropy_refused'
      if ('kind' in witness) return useRound(witness, timestampMs)
      const { valueHex, publicKey, signatureHex, sequence } = witness
      const key = keys.get(publicKey)
      if (key === undefined && !(unsigned !== undefined && publicKey === UNSIGNED_KEY)) return 'entropy_refused'
      if (key !== undefined) {
        const message = toEntropyMessage({ value: fromHex(valueHex), timestampMs, sequence })
        if (!isEd25519Signature(key, fromHex(signatureHex), message)) return 'entropy_refused'
      }
      if (!isInTime(timestampMs)) return 'entropy_refused'
      const name = use.kind === 'off-chain' ? undefined : `${use.kind} ${use.keyId} ${use.digest}`
      const earlier = known.get(valueHex)
      if (earlier !== undefined && (name === undefined || earlier.use !== name)) return 'entropy_used'
      if (key !== undefined) time.raiseBySample(timestampMs)
      if (earlier !== undefined && earlier.timestampMs >= timestampMs) return undefined
      forget()
      if (earlier === undefined && known.size >= limit) return 'entropy_memory_full'
      remember(valueHex, { use: name, timestampMs })
      return undefined
    },
  }
}

function toSecond(timeMs: number): number {
  return Math.floor(timeMs / 1000)
}
