import type { Chain } from '../../services/coordinator/src/publish/chain/viemChain.ts'
import { confirmPublications } from '../../services/coordinator/src/publish/confirm.ts'
import { createObservations } from '../../services/coordinator/src/publish/confirmRun.ts'
import type { Pinner } from '../../services/coordinator/src/publish/ipfs/pinner.ts'
import { createPinStage } from '../../services/coordinator/src/publish/pin.ts'
import { publishDue } from '../../services/coordinator/src/publish/publish.ts'
import type { AnchorDeps, AnchorTarget } from '../../services/coordinator/src/publish/publishAnchors.ts'
import { createOutages } from '../../services/coordinator/src/publish/send.ts'
import type { AnchorStore } from '../../services/coordinator/src/store/anchors.ts'
import { CONFIRM_QUEUE, PUBLISH_QUEUE, type QueueName } from '../../services/coordinator/src/store/jobs.ts'
import type { PinningStore } from '../../services/coordinator/src/store/pinning.ts'
import type { PublicationStore } from '../../services/coordinator/src/store/publications.ts'
import type { Clock } from '../../services/coordinator/src/system.ts'
import { type Mode, PIN_DEADLINE_MS, PUBLISH_DEADLINE_MS } from './commands.ts'
import type { Gate } from './gates.ts'

/** Everything that workers call. */
export type Outside = {
  chain: Chain
  pinner: Pick<Pinner, 'pin' | 'read'>
  pinning: PinningStore
  publications: PublicationStore
  anchors: AnchorStore
  target: AnchorTarget
  insertJobs(queue: QueueName, data: readonly object[]): Promise<void>
}

export type WorkerProcess = ReturnType<typeof createWorkerProcess>

export const CONFIRMATIONS = 3
/** In real time: how long a worker waits for a pin service that doesn't answer. Receipts with a log entry have five blocks. */
const SILENCE_MS = { events: 5, checkpoints: 300 }

/** A worker process with its three stages. All calls to the outside pass a gate. */
export function createWorkerProcess(
  outside: Outside,
  { clock, form, mode, delayMs }: { clock: Clock; form: Mode; mode: Mode; delayMs: number },
) {
  const silenceMs = SILENCE_MS[form]
  let gate: Gate = (call) => call()
  const wrap = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get(object, name) {
        const value = Reflect.get(object, name)
        if (typeof value !== 'function') return value
        return (...parameters: unknown[]) => gate(() => value.apply(object, parameters))
      },
    })
  const ignore = () => {}
  const log = { info: ignore, warn: ignore, error: ignore }
  const observations = createObservations()
  const pinStage = createPinStage({
    store: wrap(outside.pinning),
    pinner: wrap(outside.pinner),
    clock,
    random: () => 0.5,
    log,
    pinDeadlineMs: PIN_DEADLINE_MS,
    timeoutMs: silenceMs,
  })
  const pinner = wrap(outside.pinner)
  const limit = ({ signal }: { signal: AbortSignal }) => ({
    signal: AbortSignal.any([signal, AbortSignal.timeout(silenceMs)]),
  })
  const anchoring: AnchorDeps = {
    anchors: wrap(outside.anchors),
    pinner: {
      pin: (block, { signal }) => pinner.pin(block, limit({ signal })),
      read: (cid, { signal }) => pinner.read(cid, limit({ signal })),
    },
    target: outside.target,
    delayMs,
    observeAnchor: ignore,
  }
  const deps = {
    store: wrap(outside.publications),
    chain: wrap(outside.chain),
    clock,
    log,
    publishDeadlineMs: PUBLISH_DEADLINE_MS,
    outages: createOutages(),
    anchoring: mode === 'checkpoints' ? anchoring : undefined,
  }
  return {
    setGate(next: Gate) {
      gate = next
    },
    /** Pins all proofs at once and waits for all of them. */
    async pin(slugs: readonly string[]) {
      const outcomes = await Promise.allSettled(slugs.map((slug) => pinStage.pin(slug)))
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    },
    async publish() {
      const { waitMs } = await publishDue(deps)
      if (waitMs !== undefined) await gate(() => outside.insertJobs(PUBLISH_QUEUE, [{}]))
    },
    async confirm() {
      const { open } = await confirmPublications({ ...deps, confirmations: CONFIRMATIONS, observations })
      if (open > 0) await gate(() => outside.insertJobs(CONFIRM_QUEUE, [{}]))
    },
  }
}
