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
import { createLogTable, type LogTable } from './logTable.ts'
import { CLAIM_MS, createLogWriter, type LogWriter } from './logWriter.ts'
import type { WitnessAnswer, WitnessClient } from './witnessClient.ts'

/** Metrics of logs. */
export type LogMetrics = {
  observeRound(outcome: RoundOutcome, seconds: number): void
  observeWitness(witness: string, outcome: WitnessAnswer['outcome']): void
  observeLogSize(origin: string, kind: 'written' | 'cosigned', size: number): void
  observeEntry(kind: LogEntry['kind']): void
}

export type CosignedLogDeps = {
  store: LogStore
  /** By key in hex. */
  clients: ReadonlyMap<string, WitnessClient>
  metrics: LogMetrics
  clock: Clock
  schedule: Schedule
  log: Log
  /** Called when too many witnesses refuse this log. */
  onRefused(origin: string): void
}

/** A log with the functions that write and cosign it, and its table. */
export type CosignedLog = { origin: string; hash: string; writer: LogWriter; cosigner: Cosigner; table: LogTable }

export type CosignedLogs = ReturnType<typeof createCosignedLogs>

/** Creates each log when it is first used. */
export function createCosignedLogs({ metrics, onRefused, ...deps }: CosignedLogDeps) {
  const { store, clock, log } = deps
  const logs = new Map<string, CosignedLog & { vkey: string; setPolicy(policy: WitnessPolicy): void }>()
  let deleting: Promise<void> | undefined
  /** Settles when the replaced logs have stopped. */
  let stopping: Promise<unknown> = Promise.resolve()

  /** Runs in the background. A failure is retried at the next call. */
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
    return { origin, hash, vkey, writer, cosigner, table: createLogTable({ ...deps, hash, cosigner }), setPolicy }
  }

  return {
    /** Returns the log of an enclave that attested `terms`. Throws `log_unavailable` if the enclave hasn't attested the origin as its own. */
    get(origin: string, terms: EnclaveTerms): CosignedLog {
      const { settings, logs: attested } = terms
      const vkey = attested?.own.includes(origin) ? findLogKey(terms, origin) : undefined
      if (settings.log === null || vkey === undefined) {
        throw new CoordinatorError('log_unavailable', 'the enclave has not attested this log', { details: origin })
      }
      const known = logs.get(origin)
      // Another key means another log, even if the name is the same: it belongs to enclaves with another root secret.
      const current = known?.vkey === vkey ? known : create(vkey, settings.log)
      if (known !== undefined && known !== current)
        stopping = Promise.all([stopping, known.cosigner.stop(createReplacedError())])
      current.setPolicy(settings.log)
      logs.set(origin, current)
      return current
    },
    /** Returns a log that has been used before. */
    find: (origin: string): CosignedLog | undefined => logs.get(origin),
    async stop() {
      await Promise.all([deleting, stopping, ...[...logs.values()].map(({ cosigner }) => cosigner.stop())])
    },
  }
}

function createReplacedError() {
  return new CoordinatorError('log_unavailable', 'the log has another key now')
}
