import { createServer } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { StageMetrics } from './pipeline/worker.ts'
import type { SigningMetrics } from './sign/batchSigner.ts'
import type { ProofCount } from './store/inspect.ts'
import type { LogMetrics } from './transparency/keptLog.ts'

/** What operators watch; served on a port of its own, which the internet never reaches. */
export type Metrics = SigningMetrics &
  StageMetrics &
  LogMetrics & {
    listen(port: number, host: string): Promise<{ stop(): Promise<void> }>
  }

export type MetricsDeps = { now(): number; countOpenProofs(): Promise<ProofCount[]> }

export function createMetrics({ now, countOpenProofs }: MetricsDeps): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const batches = new Histogram({
    name: 'countersign_sign_batch_size',
    help: 'Signings sent to the enclave in one call',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers: [registry],
  })
  const signings = new Histogram({
    name: 'countersign_sign_seconds',
    help: 'Time of a request for a signature, by its outcome',
    labelNames: ['code'],
    buckets: [0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    registers: [registry],
  })
  const stages = new Counter({
    name: 'countersign_stage_attempts_total',
    help: 'Attempts of the stages policy, pin, publish and confirm, by their outcome; of retention, receipts that were dropped or kept',
    labelNames: ['stage', 'outcome'],
    registers: [registry],
  })
  const rounds = new Histogram({
    name: 'countersign_log_round_seconds',
    help: 'Time to have a checkpoint cosigned, by the outcome of asking all witnesses at once',
    labelNames: ['outcome'],
    buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    registers: [registry],
  })
  const witnesses = new Counter({
    name: 'countersign_log_witness_answers_total',
    help: 'What witnesses did with a checkpoint, by witness',
    labelNames: ['witness', 'outcome'],
    registers: [registry],
  })
  const sizes = new Gauge({
    name: 'countersign_log_size',
    help: 'Entries of a log that are written, and that are cosigned',
    labelNames: ['origin', 'state'],
    registers: [registry],
  })
  const entries = new Counter({
    name: 'countersign_log_entries_total',
    help: 'Entries written to logs, by their kind; dropped and unacknowledged ones were not answered',
    labelNames: ['kind'],
    registers: [registry],
  })
  const waiting = { labelNames: ['status'], registers: [registry] }
  const oldest = new Gauge({
    name: 'countersign_oldest_open_proof_seconds',
    help: 'Age of the oldest proof that still has somewhere to go',
    ...waiting,
  })
  new Gauge({
    name: 'countersign_open_proofs',
    help: 'Proofs that still have somewhere to go',
    ...waiting,
    async collect() {
      // Statuses that nothing waits in are zero, not absent.
      const counts = new Map((await countOpenProofs()).map((count) => [count.status, count]))
      for (const status of ['pending_pin', 'pending_onchain'] as const) {
        const found = counts.get(status)
        this.set({ status }, found?.count ?? 0)
        oldest.set({ status }, found === undefined ? 0 : Math.max(0, (now() - found.oldestAt) / 1000))
      }
    },
  })
  return {
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
          const text = await registry.metrics()
          response.setHeader('content-type', registry.contentType)
          response.end(text)
        } catch {
          // The database is unavailable; the failed scrape shows it.
          response.writeHead(503).end()
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
