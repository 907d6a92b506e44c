import { isSatisfied, type WitnessPolicy } from '@countersign/log'
import type { Log } from '@countersign/service'
import type { Clock } from '../system.ts'
import type { WitnessAnswer } from './witnessClient.ts'

export type WitnessCount = { named: number; missing: number; quorum: number }

type StandingsDeps = {
  origin: string
  /** By their keys in hex, with their names. */
  clients: ReadonlyMap<string, { key: { name: string } }>
  /** Of the enclave's settings as they are now. */
  getPolicy(): WitnessPolicy
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** A witness that cosigned within this time is there. */
  latelyMs: number
}

/** Which of a log's witnesses are there: each by its last answer. */
export function createStandings({ origin, clients, getPolicy, clock, log, latelyMs }: StandingsDeps) {
  const standing = new Map<string, { outcome: WitnessAnswer['outcome']; at: number }>()

  const toName = (witness: string) => clients.get(witness)?.key.name ?? `${witness.slice(0, 16)}…`

  function isThere(witness: string): boolean {
    const { outcome, at } = standing.get(witness) ?? {}
    return outcome === 'cosigned' && clock.now() - (at ?? 0) < latelyMs
  }

  /** Names of the witnesses without a good answer lately. */
  function findMissing(): string[] {
    return getPolicy()
      .witnesses.filter((witness) => !isThere(witness))
      .map(toName)
  }

  return {
    /** What a witness answered just now. Written once for each change: a witness may be away for long. */
    set(witness: string, answer: Exclude<WitnessAnswer, { outcome: 'ahead' }>) {
      const { outcome } = answer
      const before = standing.get(witness)?.outcome
      standing.set(witness, { outcome, at: clock.now() })
      if (outcome === before) return
      const line = { origin, witness: toName(witness) }
      if ('reason' in answer) {
        log.warn({ msg: 'A witness did not cosign', ...line, code: outcome, reason: answer.reason })
      } else if (before !== undefined) log.info({ msg: 'A witness cosigns again', ...line })
    },
    /** That a witness cosigned at a time, unless it is known better. */
    setCosigned(witness: string, at: number) {
      if (!standing.has(witness)) standing.set(witness, { outcome: 'cosigned', at })
    },
    findMissing,
    count(): WitnessCount {
      const { witnesses, quorum } = getPolicy()
      return { named: witnesses.length, missing: findMissing().length, quorum }
    },
    /** Whether the witnesses with a good answer lately are enough. */
    hasQuorum: () => isSatisfied(getPolicy(), getPolicy().witnesses.filter(isThere)),
  }
}
