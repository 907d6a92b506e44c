import { type AppendedEntries, type LogResponse, MAX_STATES_PER_CALL } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { EnclaveLog, EnclaveTerms, KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import { toCosigned } from '../sign/enclave/logCalls.ts'
import { toReason } from '../toReason.ts'
import { LogFault } from './appended.ts'
import type { CosignedLog, CosignedLogs } from './cosignedLogs.ts'

export type LogRunnerDeps = {
  enclave: Pick<KeyEnclave, 'release'>
  logs: CosignedLogs
  log: Log
}

/** Starts the log of one enclave, and stores and cosigns the entries that the enclave appends without a request. */
export type LogRunner = {
  /** Polls the enclave once. Never throws. */
  step(): Promise<void>
  readonly state: LogRunnerState
  /** Returns what a boot appended to this log, starting at `from`. Throws `log_unavailable` if that boot has ended. */
  repeat(parameters: { bootId: string; origin: string; from: number }): Promise<AppendedEntries>
}

type LogRunnerState =
  /** The enclave has not responded yet. */
  | { kind: 'unknown' }
  /** The enclave's settings name no log. */
  | { kind: 'none' }
  | { kind: 'closed' | 'open'; bootId: string; cosignedLog: CosignedLog }

type Started = LogResponse & { log: NonNullable<LogResponse['log']> }

export function createLogRunner({ enclave, logs, log }: LogRunnerDeps, enclaveLog: EnclaveLog): LogRunner {
  const { address } = enclaveLog
  let state: LogRunnerState = { kind: 'unknown' }
  /** The last failure. A repeated failure is logged once. */
  let lastReason: string | undefined
  let announcedBoot: string | undefined
  /** The log's size when its table was compared with the stored states. */
  let checkedSize: number | undefined

  async function poll(): Promise<void> {
    const terms = await enclaveLog.getTerms()
    const own = terms.logs?.own ?? []
    if (terms.settings.log === null || own.length === 0) {
      state = { kind: 'none' }
      return
    }
    const known = 'cosignedLog' in state ? state.cosignedLog.writer.size : undefined
    let answer = await enclaveLog.call(known === undefined ? {} : { from: known })
    announce(answer.bootId, terms)
    // Uses the first origin, in the enclave's order, that works with its witnesses.
    for (const origin of own) {
      if (answer.log !== null && own.indexOf(answer.log.origin) > own.indexOf(origin)) continue
      try {
        if (answer.log?.origin !== origin) answer = await start(origin, terms)
        await processAppended(assertStarted(answer, origin), terms)
        return
      } catch (error) {
        if (!isFatal(error) || origin === own.at(-1)) throw error
        await assertSameBoot(answer)
        log.error({ msg: 'Abandoned a log', enclave: address, origin, bootId: answer.bootId, ...toReason(error) })
      }
    }
  }

  /** Throws if the enclave has restarted: an origin must not be abandoned because of the log of an earlier boot. */
  async function assertSameBoot({ bootId, log: appended }: LogResponse): Promise<void> {
    const now = await enclaveLog.call({ from: appended === null ? 0 : appended.from + appended.entries.length })
    if (now.bootId !== bootId) throw createRestartError(appended?.origin)
  }

  /** Starts from the newest stored checkpoint, because witnesses have seen none that is newer. */
  async function start(origin: string, terms: EnclaveTerms): Promise<LogResponse> {
    const stored = await logs.get(origin, terms).table.readStart()
    const { states = [], size = 0, start = { checkpoint: null, hashes: [] } } = stored ?? {}
    for (let from = 0; from < states.length; from += MAX_STATES_PER_CALL) {
      await enclaveLog.call({ states: { from, rows: states.slice(from, from + MAX_STATES_PER_CALL) } })
    }
    const answer = await enclaveLog.call({ start: { origin, ...start } }).catch((error: unknown) => {
      const isRefused = error instanceof CoordinatorError && error.details === 'log_refused'
      throw isRefused ? new LogFault('log_refused', 'the enclave refuses to continue the stored log') : error
    })
    log.info({ msg: 'Started a log', enclave: address, origin, bootId: answer.bootId, size })
    return answer
  }

  /**
   * Stores the appended entries, collects cosignatures, and sends them to the enclave. The enclave then opens its log and can forget the
   * entries.
   */
  async function processAppended({ bootId, log: appended }: Started, terms: EnclaveTerms): Promise<void> {
    const cosignedLog = logs.get(appended.origin, terms)
    const { writer, cosigner, table } = cosignedLog
    const isNew = !('cosignedLog' in state) || state.bootId !== bootId || state.cosignedLog !== cosignedLog
    if (isNew) cosigner.reset()
    state = { kind: appended.isOpen ? 'open' : 'closed', bootId, cosignedLog }
    const size = appended.from + appended.entries.length
    await writer.write(appended, {
      bootId,
      claims: [],
      repeat: (from) => repeat({ bootId, origin: cosignedLog.origin, from }),
    })
    if (!appended.isOpen || appended.entries.length > 0) {
      const { note } = await cosigner.cosign({ size }).catch((error: unknown) => {
        throw toRefusal(cosigner.refusal) ?? error
      })
      await enclave.release({ bootId, ...toCosigned(note) })
      if (!appended.isOpen)
        log.info({ msg: 'Opened a log', enclave: address, origin: cosignedLog.origin, bootId, size })
      state = { kind: 'open', bootId, cosignedLog }
    }
    const refusal = toRefusal(cosigner.refusal)
    if (refusal !== undefined) throw refusal
    if (writer.size !== checkedSize) await table.check()
    checkedSize = writer.size
  }

  async function repeat({ bootId, origin, from }: { bootId: string; origin: string; from: number }) {
    const answer = await enclaveLog.call({ from })
    if (answer.bootId === bootId && answer.log?.origin === origin) return answer.log
    throw createRestartError(origin)
  }

  /** Logs the enclave's keys before anything else, because witnesses must be configured with them before they can cosign. */
  function announce(bootId: string, { logs: attested }: EnclaveTerms) {
    if (announcedBoot === bootId) return
    announcedBoot = bootId
    log.info({ msg: 'Found an enclave with a log', enclave: address, bootId, vkeys: attested?.keys.join(' ') })
  }

  return {
    async step() {
      try {
        await poll()
        lastReason = undefined
      } catch (error) {
        const { code, reason } = toReason(error)
        if (state.kind === 'open') state = { ...state, kind: isFatal(error) ? 'closed' : 'open' }
        if (lastReason !== `${code} ${reason}`) {
          const line = { msg: 'Could not run a log', enclave: address, code, reason }
          // The enclave has no further origin, so the operator must act.
          if (isFatal(error)) log.error(line)
          else log.warn(line)
        }
        lastReason = `${code} ${reason}`
      } finally {
        // Refreshes even after a failure, because an unreachable enclave says nothing about the witnesses.
        if ('cosignedLog' in state) state.cosignedLog.cosigner.refresh()
      }
    },
    get state() {
      return state
    },
    repeat,
  }
}

/** Whether this boot can't use the origin. */
function isFatal(error: unknown): boolean {
  return error instanceof LogFault && error.code !== 'log_malformed'
}

function toRefusal(reasons: string | undefined): LogFault | undefined {
  return reasons === undefined
    ? undefined
    : new LogFault('log_refused', 'the witnesses refuse the log', { details: reasons })
}

function assertStarted(answer: LogResponse, origin: string): Started {
  if (answer.log?.origin === origin) return { ...answer, log: answer.log }
  throw new CoordinatorError('log_unavailable', 'the enclave did not start its log', { details: origin })
}

function createRestartError(origin: string | undefined) {
  return new CoordinatorError('log_unavailable', 'the enclave has restarted', { details: origin })
}
