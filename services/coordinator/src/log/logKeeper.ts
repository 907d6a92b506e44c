import { toHex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { LogRecorder } from '../sign/signLog.ts'
import type { Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { LogFault } from './appended.ts'
import { createKeptLogs, type KeptLogDeps } from './keptLog.ts'
import { createLogRunner, type LogRunner } from './logRunner.ts'
import type { WitnessCount } from './standings.ts'
import type { WitnessSite } from './witnessClient.ts'
import { createWitnessClient } from './witnessClient.ts'

/** Keeps the logs of enclaves: writes them, has them cosigned, serves them. */
export type LogKeeper = LogRecorder & {
  /** What does not answer, or not well, in words: `witness NAME`, `log ORIGIN`. */
  findMissing(): readonly string[]
  /** Whether anything can be released: some enclave's log is open, and a quorum cosigned lately. True for enclaves without a log. */
  isOpen(): boolean
  /** For each log that was heard of: its witnesses, how many of them did not cosign lately, and how many must. */
  countWitnesses(): readonly ({ origin: string } & WitnessCount)[]
  stop(): Promise<void>
}

export type LogKeeperDeps = Omit<KeptLogDeps, 'clients' | 'onRefused'> & {
  enclave: Pick<KeyEnclave, 'release' | 'logs'>
  witnesses: readonly WitnessSite[]
  /** For one witness to answer. */
  witnessTimeoutMs?: number
}

const STEP_MS = 1_000

/** Keeps the logs of all enclaves, and looks after each of them about once a second. */
export function createLogKeeper({ enclave, witnesses, witnessTimeoutMs, ...deps }: LogKeeperDeps): LogKeeper {
  const { store, schedule, log } = deps
  const timeout = witnessTimeoutMs === undefined ? {} : { timeoutMs: witnessTimeoutMs }
  const clients = new Map(witnesses.map((site) => [toHex(site.key.publicKey), createWitnessClient(site, timeout)]))
  const logs = createKeptLogs({ ...deps, clients, onRefused: wake })
  const runners = enclave.logs.map((enclaveLog) => createLogRunner({ enclave, store, logs, log }, enclaveLog))
  const loops = runners.map((runner) => createLoop(runner, schedule))
  for (const loop of loops) loop.run()

  /** Something is wrong with a log: whoever runs it looks at once. */
  function wake(origin: string) {
    for (const [index, { state }] of runners.entries()) {
      if ('kept' in state && state.kept.origin === origin) loops[index]?.run()
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
      const kept = logs.find(origin)
      if (kept === undefined) throw unavailable('the log is not known')
      return kept.cosigner.cosign(parameters)
    },
    releaseClaims: (claims) => store.releaseClaims(claims),
    findMissing() {
      const missing = runners.flatMap(({ state }) => {
        if (state.kind === 'none') return []
        if (state.kind === 'unknown') return ['log of an enclave']
        const { origin, cosigner } = state.kept
        const own = cosigner.findMissing().map((name) => `witness ${name}`)
        return state.kind === 'open' ? own : [`log ${origin}`, ...own]
      })
      return [...new Set(missing)]
    },
    isOpen: () =>
      runners.some(({ state }) => state.kind === 'none' || (state.kind === 'open' && state.kept.cosigner.hasQuorum())),
    countWitnesses: () =>
      runners.flatMap(({ state }) =>
        'kept' in state ? [{ origin: state.kept.origin, ...state.kept.cosigner.countWitnesses() }] : [],
      ),
    async stop() {
      // Whoever waits for a witness is told at once.
      await Promise.all([...clients.values()].map((client) => client.stop()))
      await Promise.all([logs.stop(), ...loops.map((loop) => loop.stop())])
    },
  }
}

/** One step after the other, with a pause that a call cuts short. */
function createLoop(runner: LogRunner, schedule: Schedule) {
  let running: Promise<void> | undefined
  let isStopped = false
  let cancel = () => {}
  function run() {
    // A step that is under way sees what there is to see.
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
