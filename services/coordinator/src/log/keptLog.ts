import { hash as computeHash } from 'node:crypto'
import { type LogEntry, parseVkey, TILE_WIDTH, type WitnessPolicy } from '@countersign/log'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { EnclaveTerms } from '../sign/enclave/keyEnclave.ts'
import { findLogKey } from '../sign/enclave/logCalls.ts'
import type { LogStore } from '../store/logs.ts'
import type { Clock, Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { type Cosigner, createCosigner, type RoundOutcome } from './cosigner.ts'
import { CLAIM_MS, createLogWriter, type LogWriter } from './logWriter.ts'
import type { WitnessAnswer, WitnessClient } from './witnessClient.ts'

/** What operators watch of logs. */
export type LogMetrics = {
  observeRound(outcome: RoundOutcome, seconds: number): void
  observeWitness(witness: string, outcome: WitnessAnswer['outcome']): void
  observeLogSize(origin: string, kind: 'written' | 'cosigned', size: number): void
  observeEntry(kind: LogEntry['kind']): void
}

export type KeptLogDeps = {
  store: LogStore
  /** By their keys in hex. */
  clients: ReadonlyMap<string, WitnessClient>
  metrics: LogMetrics
  clock: Clock
  schedule: Schedule
  log: Log
  /** Too many witnesses refuse this log. */
  onRefused(origin: string): void
}

/** One log: written by one, cosigned by the other. */
export type KeptLog = { origin: string; hash: string; writer: LogWriter; cosigner: Cosigner }

export type KeptLogs = ReturnType<typeof createKeptLogs>

/** Logs by their origins, each made when it is first heard of. */
export function createKeptLogs({ metrics, onRefused, ...deps }: KeptLogDeps) {
  const { store, clock, log } = deps
  const logs = new Map<string, KeptLog & { vkey: string; setPolicy(policy: WitnessPolicy): void }>()
  let deleting: Promise<void> | undefined
  /** What logs that others took the place of still do. */
  let left: Promise<unknown> = Promise.resolve()

  /** Nobody waits for it, and what fails is for the next time. */
  function deleteClaims() {
    deleting ??= store
      .deleteClaims(clock.now() - CLAIM_MS)
      .catch((error: unknown) => log.warn({ msg: 'Could not delete old claims', ...toReason(error) }))
      .finally(() => {
        deleting = undefined
      })
  }

  function create(vkey: string, firstPolicy: WitnessPolicy) {
    const key = parseVkey(vkey)
    const origin = key.name
    const hash = computeHash('sha256', origin, 'hex')
    let policy = firstPolicy
    const writer = createLogWriter({
      ...deps,
      key,
      hash,
      onWritten({ size, kinds }) {
        metrics.observeLogSize(origin, 'written', size)
        for (const kind of kinds) metrics.observeEntry(kind)
        if (size % TILE_WIDTH < kinds.length) deleteClaims()
      },
    })
    const cosigner = createCosigner({
      ...deps,
      key,
      hash,
      getPolicy: () => policy,
      getRecent: writer.findRecent,
      getWritten: () => writer.newest,
      onRound: metrics.observeRound,
      onAnswer: metrics.observeWitness,
      onCosigned: (size) => metrics.observeLogSize(origin, 'cosigned', size),
      onRefused: () => onRefused(origin),
    })
    const setPolicy = (next: WitnessPolicy) => {
      policy = next
    }
    return { origin, hash, vkey, writer, cosigner, setPolicy }
  }

  return {
    /** The log of an enclave that attested these terms; `log_unavailable` for an origin that is not among its own. */
    get(origin: string, terms: EnclaveTerms): KeptLog {
      const { settings, logs: attested } = terms
      const vkey = attested?.own.includes(origin) ? findLogKey(terms, origin) : undefined
      if (settings.log === null || vkey === undefined) {
        throw new CoordinatorError('log_unavailable', 'the enclave has not attested this log', { details: origin })
      }
      const known = logs.get(origin)
      // Another key is another log, though it has the name: that of enclaves with another root secret.
      const kept = known?.vkey === vkey ? known : create(vkey, settings.log)
      if (known !== undefined && known !== kept) left = Promise.all([left, known.cosigner.stop(replaced())])
      kept.setPolicy(settings.log)
      logs.set(origin, kept)
      return kept
    },
    /** One that was heard of. */
    find: (origin: string): KeptLog | undefined => logs.get(origin),
    async stop() {
      await Promise.all([deleting, left, ...[...logs.values()].map(({ cosigner }) => cosigner.stop())])
    },
  }
}

function replaced() {
  return new CoordinatorError('log_unavailable', 'the log has another key now')
}
