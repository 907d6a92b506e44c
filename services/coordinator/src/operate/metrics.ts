import { createServer } from 'node:http'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { CoordinatorErrorCode } from '../errors.ts'
import type { ProblemMetrics } from '../http/problem.ts'
import type { LogMetrics } from '../log/cosignedLogs.ts'
import type { WitnessAnswer } from '../log/witnessClient.ts'
import type { BalanceMetrics } from '../publish/startPipeline.ts'
import type { WebhookMetrics } from '../publish/webhook/startWebhooks.ts'
import type { StageMetrics } from '../publish/worker.ts'
import type { SigningMetrics } from '../sign/batchSigner.ts'
import { addGauges, type GaugeDeps } from './gauges.ts'

/** Metrics for operators, on a separate port that must not be public. */
type Metrics = SigningMetrics &
  StageMetrics &
  BalanceMetrics &
  ProblemMetrics &
  WebhookMetrics &
  LogMetrics & {
    listen(port: number, host: string): Promise<{ stop(): Promise<void> }>
  }

/** Server errors. They start at zero, because Prometheus sees no increase when a counter first appears. */
const FAULTS = Object.entries(errorCodes).flatMap(([code, { status }]) => (status >= 500 ? [code] : []))

/** Outcomes that start at zero for the same reason. They often occur only once, before the coordinator abandons the log. */
const DISAGREEMENTS = ['lies', 'contradicts'] satisfies WitnessAnswer['outcome'][]

/** `witnesses` are the names of the logs' witnesses. */
export function createMetrics({
  witnesses: names = [],
  ...deps
}: GaugeDeps & { witnesses?: readonly string[] }): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers })
  const histogram = (name: string, help: string, buckets: number[], ...labelNames: string[]) =>
    new Histogram({ name, help, buckets, labelNames, registers })

  const batches = histogram(
    'countersign_sign_batch_size',
    'Signatures per enclave call',
    [1, 2, 4, 8, 16, 32, 64, 128, 256],
  )
  const signings = histogram(
    'countersign_sign_seconds',
    'Duration of sign requests by outcome',
    [0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    'code',
  )
  for (const code of ['ok', ...FAULTS]) signings.zero({ code })
  const problems = counter('countersign_problems_total', 'Failed requests by error code', 'code')
  // key_binding_mismatch is a client error. If many users get it, the enclave has another root secret.
  for (const code of [...FAULTS, 'key_binding_mismatch']) problems.inc({ code }, 0)
  const stages = counter(
    'countersign_stage_attempts_total',
    'Attempts of the stages policy, pin, publish and confirm by outcome; for retention, receipts that were dropped, or kept because dropping failed for an hour',
    'stage',
    'outcome',
  )
  for (const stage of ['pin', 'publish', 'confirm']) stages.inc({ stage, outcome: 'failed' }, 0)
  stages.inc({ stage: 'retention', outcome: 'kept' }, 0)
  const rounds = histogram(
    'countersign_log_round_seconds',
    'Time to get a checkpoint cosigned, by outcome',
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    'outcome',
  )
  const witnesses = counter(
    'countersign_log_witness_answers_total',
    'Answers of witnesses to a checkpoint, by witness and outcome',
    'witness',
    'outcome',
  )
  for (const witness of names) for (const outcome of DISAGREEMENTS) witnesses.inc({ witness, outcome }, 0)
  const sizes = gauge('countersign_log_size', 'Written and cosigned entries of a log', 'origin', 'state')
  const entries = counter(
    'countersign_log_entries_total',
    'Entries written to logs, by kind; callers got no signature for dropped and unacknowledged entries',
    'kind',
  )
  const balance = gauge('countersign_publisher_balance_wei', 'Balance of the publisher', 'account')
  const affordable = gauge(
    'countersign_publisher_affordable_gas',
    'Gas that the publisher can pay for at the current bid',
    'account',
  )
  const webhooks = counter(
    'countersign_webhook_attempts_total',
    'Attempts to deliver webhooks by receiver and outcome: delivered, failed (will retry) or dead (abandoned)',
    'receiver',
    'outcome',
  )
  const refresh = addGauges(registry, deps)
  let refreshing: Promise<string> | undefined
  /** Concurrent scrapes share one refresh, because each refresh clears the gauges first. */
  function read(): Promise<string> {
    refreshing ??= refresh()
      .then(() => registry.metrics())
      .finally(() => {
        refreshing = undefined
      })
    return refreshing
  }
  return {
    observeProblem: (code: CoordinatorErrorCode) => problems.inc({ code }),
    observeBalance(account, { wei, gas }) {
      balance.set({ account }, Number(wei))
      affordable.set({ account }, Number(gas))
    },
    observeWebhook: (receiver, outcome) => webhooks.inc({ receiver, outcome }),
    observeStage: (stage, outcome, count = 1) => stages.inc({ stage, outcome }, count),
    observeBatch: (size) => batches.observe(size),
    observeSigning: (code, seconds) => signings.observe({ code }, seconds),
    observeRound: (outcome, seconds) => rounds.observe({ outcome }, seconds),
    observeWitness: (witness, outcome) => witnesses.inc({ witness, outcome }),
    observeLogSize: (origin, state, size) => sizes.set({ origin, state }, size),
    observeEntry: (kind) => entries.inc({ kind }),
    async listen(port, host) {
      const server = createServer(async (request, response) => {
        if (request.url !== '/metrics') return void response.writeHead(404).end()
        try {
          const text = await read()
          response.setHeader('content-type', registry.contentType)
          response.end(text)
        } catch {
          response.writeHead(500).end()
        }
      })
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
      return {
        async stop() {
          server.closeAllConnections()
          await new Promise((resolve) => server.close(resolve))
        },
      }
    },
  }
}
