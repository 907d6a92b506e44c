import { isSatisfied, type WitnessPolicy } from '@countersign/log'
import type { Log } from '@countersign/service'
import type { Clock } from '../system.ts'
import type { WitnessAnswer } from './witnessClient.ts'

export type WitnessCount = { named: number; missing: number; quorum: number }

type WitnessStatusDeps = {
  origin: string
  /** By key in hex. */
  clients: ReadonlyMap<string, { key: { name: string } }>
  /** The policy in the enclave's current settings. */
  getPolicy(): WitnessPolicy
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** A witness counts as available for this time after it cosigned. */
  availableMs: number
}

/** Tracks which of a log's witnesses are available, by their last answer. */
export function createWitnessStatus({ origin, clients, getPolicy, clock, log, availableMs }: WitnessStatusDeps) {
  const answers = new Map<string, { outcome: WitnessAnswer['outcome']; at: number }>()

  const toName = (witness: string) => clients.get(witness)?.key.name ?? `${witness.slice(0, 16)}…`

  function isAvailable(witness: string): boolean {
    const { outcome, at } = answers.get(witness) ?? {}
    return outcome === 'cosigned' && clock.now() - (at ?? 0) < availableMs
  }

  /** Names of the witnesses without a recent cosignature. */
  function findMissing(): string[] {
    return getPolicy()
      .witnesses.filter((witness) => !isAvailable(witness))
      .map(toName)
  }

  return {
    /** Records an answer. Logs only changes, because a witness may be down for a long time. */
    set(witness: string, answer: Exclude<WitnessAnswer, { outcome: 'ahead' }>) {
      const { outcome } = answer
      const before = answers.get(witness)?.outcome
      answers.set(witness, { outcome, at: clock.now() })
      if (outcome === before) return
      const line = { origin, witness: toName(witness) }
      if ('reason' in answer) {
        log.warn({ msg: 'A witness did not cosign', ...line, code: outcome, reason: answer.reason })
      } else if (before !== undefined) log.info({ msg: 'A witness cosigns again', ...line })
    },
    /** Records an earlier cosignature, unless there is an answer already. */
    setCosigned(witness: string, at: number) {
      if (!answers.has(witness)) answers.set(witness, { outcome: 'cosigned', at })
    },
    findMissing,
    count(): WitnessCount {
      const { witnesses, quorum } = getPolicy()
      return { named: witnesses.length, missing: findMissing().length, quorum }
    },
    /** Whether the available witnesses form a quorum. */
    hasQuorum: () => isSatisfied(getPolicy(), getPolicy().witnesses.filter(isAvailable)),
  }
}
