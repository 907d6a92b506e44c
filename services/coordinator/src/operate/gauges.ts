import { statfs } from 'node:fs/promises'
import { withinTimeLimit } from '@countersign/protocol'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { WitnessCount } from '../log/standings.ts'
import type { EntropyStats } from '../sign/entropy/readAhead.ts'
import type { ConnectionCount } from '../store/openDatabase.ts'
import type { ProofCount } from '../store/proofs.ts'
import type { WebhookCount } from '../store/webhooks.ts'

/** What is looked up when somebody asks for the metrics. */
export type GaugeDeps = {
  now(): number
  /** `mode` is that of the silicon; `none` for a program that attests nothing. */
  info: { program: 'coordinator' | 'worker'; version: string; mode: 'hardware' | 'mock' | 'none' }
  /** What this process cannot work without: each answers false, or throws, while it is missing. */
  parts: Readonly<Record<string, () => unknown>>
  countOpenProofs(): Promise<ProofCount[]>
  countWebhooks(): Promise<WebhookCount[]>
  countConnections(): ConnectionCount
  /** Where this process keeps files, if it does. */
  dataDir: string
  /** Those of a coordinator. */
  signing?: SigningGaugeDeps
  /** How long one question may take. By default 4 s, below the 10 s that Prometheus waits. */
  waitMs?: number
}

type SigningGaugeDeps = {
  checkEnclaves(): Promise<readonly { address: string; isUp: boolean }[]>
  listCollateral(): readonly { platform: string; lapsesAt: number }[]
  /** When the coordinator's attestation of itself lapses. Throws while there is none. */
  attestationLapsesAt(): number
  /** Undefined for a beacon. */
  readEntropy(): EntropyStats | undefined
  countWitnesses(): readonly ({ origin: string } & WitnessCount)[]
}

const WAIT_MS = 4_000

/**
 * Adds metrics that are numbers of the moment, and returns what reads them anew. A question that fails, or takes too long, leaves its
 * metrics out: no number, rather than the last one.
 */
export function addGauges(registry: Registry, deps: GaugeDeps): () => Promise<void> {
  const { now, waitMs = WAIT_MS } = deps
  const gauge = createGaugeFactory(registry)
  const info = gauge(
    'countersign_info',
    'Always 1: the program, its version and its silicon',
    'program',
    'version',
    'mode',
  )
  const clock = gauge('countersign_clock_seconds', 'The time of this process, to compare with that of the scraper')
  const part = gauge('countersign_part_up', 'Whether a part is there that the process cannot work without', 'part')
  const open = gauge('countersign_open_proofs', 'Proofs that still have somewhere to go', 'status')
  const oldest = gauge(
    'countersign_oldest_open_proof_seconds',
    'Age of the oldest proof that still has somewhere to go',
    'status',
  )
  const webhooks = gauge(
    'countersign_open_webhooks',
    'Webhooks that are still to be delivered (pending), and that were given up (dead), by receiver; counted up to 10000',
    'receiver',
    'status',
  )
  const oldestWebhook = gauge(
    'countersign_oldest_open_webhook_seconds',
    'Age of the oldest webhook that is still to be delivered, by receiver',
    'receiver',
  )
  const connections = gauge(
    'countersign_database_connections',
    'Connections to PostgreSQL that are used or idle, callers that wait for one, and the limit',
    'state',
  )
  const free = gauge('countersign_disk_free_bytes', 'Free space on the file system of the data folder')
  const size = gauge('countersign_disk_size_bytes', 'Size of the file system of the data folder')

  const parts = Object.entries(deps.parts).map(([name, question]) => ({
    name,
    askWhetherUp: createQuestion(async () => (await question()) !== false, waitMs),
  }))
  const askProofs = createQuestion(deps.countOpenProofs, waitMs)
  const askWebhooks = createQuestion(deps.countWebhooks, waitMs)
  const askDisk = createQuestion(() => statfs(deps.dataDir), waitMs)

  async function readParts() {
    const asked = parts.map(async ({ name, askWhetherUp }) => {
      part.set({ part: name }, (await askWhetherUp()) === true ? 1 : 0)
    })
    await Promise.all(asked)
  }
  async function readProofs() {
    const found = await askProofs()
    if (found === undefined) return
    // Statuses that nothing waits in are zero, not absent.
    for (const status of ['pending_pin', 'pending_onchain'] as const) {
      const { count = 0, oldestAt = now() } = found.find((one) => one.status === status) ?? {}
      open.set({ status }, count)
      oldest.set({ status }, Math.max(0, (now() - oldestAt) / 1000))
    }
  }
  async function readWebhooks() {
    for (const { receiver, pending, dead, oldestAt = now() } of (await askWebhooks()) ?? []) {
      webhooks.set({ receiver, status: 'pending' }, pending)
      webhooks.set({ receiver, status: 'dead' }, dead)
      oldestWebhook.set({ receiver }, Math.max(0, (now() - oldestAt) / 1000))
    }
  }
  async function readDisk() {
    const found = await askDisk()
    if (found === undefined) return
    free.set(found.bavail * found.bsize)
    size.set(found.blocks * found.bsize)
  }
  const readSigning = deps.signing === undefined ? undefined : addSigningGauges(registry, deps.signing, waitMs)

  return async () => {
    gauge.clear()
    info.set(deps.info, 1)
    // Before anything is waited for: the scraper compares it with when it began.
    clock.set(now() / 1000)
    for (const [state, count] of Object.entries(deps.countConnections())) connections.set({ state }, count)
    await Promise.all([readParts(), readProofs(), readWebhooks(), readDisk(), readSigning?.()])
  }
}

function addSigningGauges(registry: Registry, deps: SigningGaugeDeps, waitMs: number): () => Promise<void> {
  const gauge = createGaugeFactory(registry)
  const enclaves = gauge(
    'countersign_enclave_up',
    'Whether the enclave at an address has attested itself and answers',
    'enclave',
  )
  const collateral = gauge(
    'countersign_collateral_lapses_at_seconds',
    'Until when Intel’s collateral for a platform is in date, in seconds since 1970',
    'platform',
  )
  const attestation = gauge(
    'countersign_attestation_lapses_at_seconds',
    'When the coordinator’s attestation of itself lapses, in seconds since 1970; 0 while there is none',
  )
  const buffered = gauge('countersign_entropy_buffered', 'Entropy samples that are ready')
  const witnesses = gauge(
    'countersign_log_witnesses',
    'Witnesses of a log: those that it names, those of them that are missing, and how many must cosign',
    'origin',
    'state',
  )
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const samples = counter('countersign_entropy_samples_total', 'Entropy samples, by what became of them', 'outcome')
  const failures = counter('countersign_entropy_failures_total', 'Requests to the entropy source that failed')

  const askEnclaves = createQuestion(deps.checkEnclaves, waitMs)
  function readAttestation(): number {
    try {
      return deps.attestationLapsesAt()
    } catch {
      return 0
    }
  }
  function readEntropy() {
    const stats = deps.readEntropy()
    if (stats === undefined) return
    const { handedOut, unused, replayed, refused } = stats
    buffered.set(stats.buffered)
    failures.reset()
    failures.inc(stats.failures)
    samples.reset()
    for (const [outcome, count] of Object.entries({ handed_out: handedOut, unused, replayed, ...refused })) {
      samples.inc({ outcome }, count)
    }
  }

  return async () => {
    gauge.clear()
    readEntropy()
    for (const { platform, lapsesAt } of deps.listCollateral()) collateral.set({ platform }, lapsesAt / 1000)
    for (const { origin, ...counts } of deps.countWitnesses()) {
      for (const [state, count] of Object.entries(counts)) witnesses.set({ origin, state }, count)
    }
    attestation.set(readAttestation() / 1000)
    for (const { address, isUp } of (await askEnclaves()) ?? []) enclaves.set({ enclave: address }, isUp ? 1 : 0)
  }
}

/** Makes gauges that have no value until they are set: one without labels would begin as zero. */
function createGaugeFactory(registry: Registry) {
  const clears: (() => void)[] = []
  function create(name: string, help: string, ...labelNames: string[]): Gauge {
    const gauge = new Gauge({ name, help, labelNames, registers: [registry] })
    const clear = () => {
      gauge.reset()
      if (labelNames.length === 0) gauge.remove()
    }
    clear()
    clears.push(clear)
    return gauge
  }
  return Object.assign(create, {
    clear() {
      for (const clear of clears) clear()
    },
  })
}

/**
 * Asks, and answers undefined where that throws or has not answered in time. While an earlier question is open it is waited for, and not
 * asked again: the database may take long to give a connection back.
 */
function createQuestion<Answer>(ask: () => Promise<Answer>, waitMs: number): () => Promise<Answer | undefined> {
  let open: Promise<Answer> | undefined
  const askOnce = () => {
    open ??= ask().finally(() => {
      open = undefined
    })
    return open
  }
  return () => withinTimeLimit(waitMs, askOnce).catch(() => undefined)
}
