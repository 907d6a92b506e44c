import { statfs } from 'node:fs/promises'
import { withinTimeLimit } from '@countersign/protocol'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { WitnessCount } from '../log/witnessStatus.ts'
import type { EntropyStats } from '../sign/entropy/readAhead.ts'
import type { ConnectionCount } from '../store/openDatabase.ts'
import type { ProofCount } from '../store/proofs.ts'
import type { WebhookCount } from '../store/webhooks.ts'

/** Values that each scrape reads. */
export type GaugeDeps = {
  now(): number
  /** `mode` is the kind of hardware, or `none` for a program without an attestation. */
  info: { program: 'coordinator' | 'worker'; version: string; mode: 'hardware' | 'mock' | 'none' }
  /** Parts that this process needs. A part is missing if its function returns false or throws. */
  parts: Readonly<Record<string, () => unknown>>
  countOpenProofs(): Promise<ProofCount[]>
  countWebhooks(): Promise<WebhookCount[]>
  countConnections(): ConnectionCount
  /** The folder whose disk is measured. Undefined: no disk metrics. */
  dataDir: string
  /** Only for coordinators. */
  signing?: SigningGaugeDeps
  /** Time limit of each read. Default 4 s: Prometheus waits 10 s. */
  waitMs?: number
}

type SigningGaugeDeps = {
  checkEnclaves(): Promise<readonly { address: string; isUp: boolean }[]>
  listCollateral(): readonly { platform: string; lapsesAt: number }[]
  /** When the coordinator's attestation expires. Throws if there is none. */
  attestationLapsesAt(): number
  /** Undefined for a beacon. */
  readEntropy(): EntropyStats | undefined
  countWitnesses(): readonly ({ origin: string } & WitnessCount)[]
}

const WAIT_MS = 4_000

/**
 * Adds metrics of the current state, and returns a function that refreshes them. A read that fails or times out omits its metrics instead
 * of repeating old values.
 */
export function addGauges(registry: Registry, deps: GaugeDeps): () => Promise<void> {
  const { now, waitMs = WAIT_MS } = deps
  const gauge = createGaugeFactory(registry)
  const info = gauge(
    'countersign_info',
    'Always 1; labels give the program, its version and its hardware mode',
    'program',
    'version',
    'mode',
  )
  const clock = gauge(
    'countersign_clock_seconds',
    'Clock of this process in seconds since 1970, to compare with the scraper',
  )
  const part = gauge('countersign_part_up', '1 if a part that the process needs is available', 'part')
  const open = gauge('countersign_open_proofs', 'Proofs that are not complete, by status', 'status')
  const oldest = gauge(
    'countersign_oldest_open_proof_seconds',
    'Age of the oldest proof that is not complete, by status',
    'status',
  )
  const webhooks = gauge(
    'countersign_open_webhooks',
    'Pending and dead webhooks by receiver; counts up to 10000',
    'receiver',
    'status',
  )
  const oldestWebhook = gauge(
    'countersign_oldest_open_webhook_seconds',
    'Age of the oldest pending webhook by receiver',
    'receiver',
  )
  const connections = gauge(
    'countersign_database_connections',
    'PostgreSQL connections in use and idle, callers that wait for one, and the limit',
    'state',
  )
  const free = gauge('countersign_disk_free_bytes', 'Free space on the file system of the data folder')
  const size = gauge('countersign_disk_size_bytes', 'Size of the file system of the data folder')

  const parts = Object.entries(deps.parts).map(([name, isUp]) => ({
    name,
    readIsUp: createReader(async () => (await isUp()) !== false, waitMs),
  }))
  const findProofs = createReader(deps.countOpenProofs, waitMs)
  const findWebhooks = createReader(deps.countWebhooks, waitMs)
  const findDisk = createReader(() => statfs(deps.dataDir), waitMs)

  async function readParts() {
    const reads = parts.map(async ({ name, readIsUp }) => {
      part.set({ part: name }, (await readIsUp()) === true ? 1 : 0)
    })
    await Promise.all(reads)
  }
  async function readProofs() {
    const found = await findProofs()
    if (found === undefined) return
    // Reports statuses without proofs as zero.
    for (const status of ['pending_pin', 'pending_onchain'] as const) {
      const { count = 0, oldestAt = now() } = found.find((one) => one.status === status) ?? {}
      open.set({ status }, count)
      oldest.set({ status }, Math.max(0, (now() - oldestAt) / 1000))
    }
  }
  async function readWebhooks() {
    for (const { receiver, pending, dead, oldestAt = now() } of (await findWebhooks()) ?? []) {
      webhooks.set({ receiver, status: 'pending' }, pending)
      webhooks.set({ receiver, status: 'dead' }, dead)
      oldestWebhook.set({ receiver }, Math.max(0, (now() - oldestAt) / 1000))
    }
  }
  async function readDisk() {
    const found = await findDisk()
    if (found === undefined) return
    free.set(found.bavail * found.bsize)
    size.set(found.blocks * found.bsize)
  }
  const readSigning = deps.signing === undefined ? undefined : addSigningGauges(registry, deps.signing, waitMs)

  return async () => {
    gauge.clear()
    info.set(deps.info, 1)
    // Set before the first await: the scraper compares it with the start of the scrape.
    clock.set(now() / 1000)
    for (const [state, count] of Object.entries(deps.countConnections())) connections.set({ state }, count)
    await Promise.all([readParts(), readProofs(), readWebhooks(), readDisk(), readSigning?.()])
  }
}

function addSigningGauges(registry: Registry, deps: SigningGaugeDeps, waitMs: number): () => Promise<void> {
  const gauge = createGaugeFactory(registry)
  const enclaves = gauge(
    'countersign_enclave_up',
    '1 if the enclave answers and its attestation was accepted',
    'enclave',
  )
  const collateral = gauge(
    'countersign_collateral_lapses_at_seconds',
    'When Intel’s collateral for a platform expires, in seconds since 1970',
    'platform',
  )
  const attestation = gauge(
    'countersign_attestation_lapses_at_seconds',
    'When the coordinator’s attestation expires, in seconds since 1970; 0 if there is none',
  )
  const buffered = gauge('countersign_entropy_buffered', 'Entropy samples in the buffer')
  const witnesses = gauge(
    'countersign_log_witnesses',
    'Witnesses of a log: named in the settings, missing, and needed for a quorum',
    'origin',
    'state',
  )
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const samples = counter('countersign_entropy_samples_total', 'Entropy samples by outcome', 'outcome')
  const failures = counter('countersign_entropy_failures_total', 'Failed requests to the entropy source')

  const findEnclaves = createReader(deps.checkEnclaves, waitMs)
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
    for (const { address, isUp } of (await findEnclaves()) ?? []) enclaves.set({ enclave: address }, isUp ? 1 : 0)
  }
}

/** Creates gauges without a value until they are set. Otherwise a gauge without labels starts at zero. */
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
 * Returns undefined if the read throws or times out. Waits for an earlier read that is still running instead of starting another one,
 * because a busy database may take long to free a connection.
 */
function createReader<Value>(read: () => Promise<Value>, waitMs: number): () => Promise<Value | undefined> {
  let running: Promise<Value> | undefined
  const readOnce = () => {
    running ??= read().finally(() => {
      running = undefined
    })
    return running
  }
  return () => withinTimeLimit(waitMs, readOnce).catch(() => undefined)
}
