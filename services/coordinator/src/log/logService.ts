import type { WitnessPolicy } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { LogRecorder } from '../sign/signLog.ts'
import type { Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { LogFault } from './appended.ts'
import { type CosignedLogDeps, createCosignedLogs } from './cosignedLogs.ts'
import { createLogRunner, type LogRunner } from './logRunner.ts'
import type { ProvenState } from './logTable.ts'
import type { WitnessSite } from './witnessClient.ts'
import { createWitnessClient } from './witnessClient.ts'
import type { WitnessCount } from './witnessStatus.ts'

/** Writes the logs of all enclaves and collects their cosignatures. */
export type LogService = LogRecorder & {
  /** Names of everything that doesn't respond, or not correctly: `witness NAME`, `log ORIGIN`. */
  findMissing(): readonly string[]
  /**
   * Whether the service can release signatures: an enclave's log is open, and a quorum cosigned recently. True for enclaves without a log.
   */
  isOpen(): boolean
  /** Per known log: its witnesses, how many of them didn't cosign recently, and the quorum. */
  countWitnesses(): readonly ({ origin: string } & WitnessCount)[]
  /** The state of a vault with budgets, cosigned by the witnesses of its policy, too. Undefined if nothing was counted yet. */
  findState(parameters: { origin: string; keyId: string; need: WitnessPolicy }): Promise<ProvenState | undefined>
  stop(): Promise<void>
}

export type LogServiceDeps = Omit<CosignedLogDeps, 'clients' | 'onRefused'> & {
  enclave: Pick<KeyEnclave, 'release' | 'logs'>
  witnesses: readonly WitnessSite[]
  /** Time limit per witness. */
  witnessTimeoutMs?: number
}

const STEP_MS = 1_000

/** Creates the service, which checks each log about once a second. */
export function createLogService({ enclave, witnesses, witnessTimeoutMs, ...deps }: LogServiceDeps): LogService {
  const { store, schedule, log } = deps
  const timeout = witnessTimeoutMs === undefined ? {} : { timeoutMs: witnessTimeoutMs }
  const clients = new Map(witnesses.map((site) => [toHex(site.key.publicKey), createWitnessClient(site, timeout)]))
  const logs = createCosignedLogs({ ...deps, clients, onRefused: wake })
  const runners = enclave.logs.map((enclaveLog) => createLogRunner({ enclave, logs, log }, enclaveLog))
  const loops = runners.map((runner) => createLoop(runner, schedule))
  for (const loop of loops) loop.run()

  /** Runs a log's next step immediately, because something is wrong with it. */
  function wake(origin: string) {
    for (const [index, { state }] of runners.entries()) {
      if ('cosignedLog' in state && state.cosignedLog.origin === origin) loops[index]?.run()
    }
  }

  return {
    async record(appended, { bootId, terms, claims }) {
      const { origin } = appended
      const { writer } = logs.get(origin, terms)
      const runner = runners.find(({ state }) => 'bootId' in state && state.bootId === bootId)
      const repeat = (from: number) =>
        runner === undefined
          ? Promise.reject(unavailable('the boot is not known'))
          : runner.repeat({ bootId, origin, from })
      try {
        return { lost: new Set(await writer.write(appended, { bootId, claims, repeat })) }
      } catch (error) {
        if (!(error instanceof LogFault)) throw error
        log.error({ msg: 'Could not write a log', origin, bootId, ...toReason(error) })
        wake(origin)
        throw unavailable(error.code, error)
      }
    },
    async cosign({ origin, ...parameters }) {
      const cosignedLog = logs.find(origin)
      if (cosignedLog === undefined) throw unavailable('the log is not known')
      return cosignedLog.cosigner.cosign(parameters)
    },
    async findState({ origin, ...wanted }) {
      const cosignedLog = logs.find(origin)
      if (cosignedLog === undefined) throw unavailable('the log is not known')
      return cosignedLog.table.findState(wanted)
    },
    findBoot(origin) {
      const isOpen = ({ state }: LogRunner) => state.kind === 'open' && state.cosignedLog.origin === origin
      const state = runners.find(isOpen)?.state
      return state?.kind === 'open' ? state.bootId : undefined
    },
    releaseClaims: (claims) => store.releaseClaims(claims),
    findMissing() {
      const missing = runners.flatMap(({ state }) => {
        if (state.kind === 'none') return []
        if (state.kind === 'unknown') return ['log of an enclave']
        const { origin, cosigner } = state.cosignedLog
        const own = cosigner.findMissing().map((name) => `witness ${name}`)
        return state.kind === 'open' ? own : [`log ${origin}`, ...own]
      })
      return [...new Set(missing)]
    },
    isOpen: () =>
      runners.some(
        ({ state }) => state.kind === 'none' || (state.kind === 'open' && state.cosignedLog.cosigner.hasQuorum()),
      ),
    countWitnesses: () =>
      runners.flatMap(({ state }) =>
        'cosignedLog' in state
          ? [{ origin: state.cosignedLog.origin, ...state.cosignedLog.cosigner.countWitnesses() }]
          : [],
      ),
    async stop() {
      // Rejects callers that wait for a witness.
      await Promise.all([...clients.values()].map((client) => client.stop()))
      await Promise.all([logs.stop(), ...loops.map((loop) => loop.stop())])
    },
  }
}

/** Repeats the runner's step with pauses. `run` ends a pause early. */
function createLoop(runner: LogRunner, schedule: Schedule) {
  let running: Promise<void> | undefined
  let isStopped = false
  let cancel = () => {}
  function run() {
    // The current step already covers the request.
    if (isStopped || running !== undefined) return
    cancel()
    running = runner.step().then(() => {
      running = undefined
      if (!isStopped) cancel = schedule(run, STEP_MS)
    })
  }
  return {
    run,
    async stop() {
      isStopped = true
      cancel()
      await running
    },
  }
}

function unavailable(details: string, cause?: unknown) {
  return new CoordinatorError('log_unavailable', 'the log cannot be used', { details, cause })
}
