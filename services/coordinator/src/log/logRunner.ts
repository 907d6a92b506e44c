import { type AppendedEntries, type LogResponse, toHex } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { EnclaveLog, EnclaveTerms, KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import { toCosigned } from '../sign/enclave/logCalls.ts'
import type { LogStore } from '../store/logs.ts'
import { toReason } from '../toReason.ts'
import { LogFault } from './appended.ts'
import type { KeptLog, KeptLogs } from './keptLog.ts'

export type LogRunnerDeps = {
  enclave: Pick<KeyEnclave, 'release'>
  store: Pick<LogStore, 'findLogHead'>
  logs: KeptLogs
  log: Log
}

/** Starts the log of one enclave, and carries on what it appends by itself. */
export type LogRunner = {
  /** One look at the enclave. It never throws. */
  step(): Promise<void>
  readonly state: LogRunnerState
  /** What a boot appended to this log from there on; `log_unavailable` where it is over. */
  repeat(asked: { bootId: string; origin: string; from: number }): Promise<AppendedEntries>
}

type LogRunnerState =
  /** Not known yet, or the enclave cannot be reached. */
  | { kind: 'unknown' }
  /** Its settings have none. */
  | { kind: 'none' }
  | { kind: 'closed' | 'open'; bootId: string; kept: KeptLog }

type Started = LogResponse & { log: NonNullable<LogResponse['log']> }

export function createLogRunner({ enclave, store, logs, log }: LogRunnerDeps, enclaveLog: EnclaveLog): LogRunner {
  const { address } = enclaveLog
  let state: LogRunnerState = { kind: 'unknown' }
  /** What went wrong last, so that it is said once. */
  let lastReason: string | undefined
  let announcedBoot: string | undefined

  async function look(): Promise<void> {
    const terms = await enclaveLog.getTerms()
    const own = terms.logs?.own ?? []
    if (terms.settings.log === null || own.length === 0) {
      state = { kind: 'none' }
      return
    }
    const known = 'kept' in state ? state.kept.writer.size : undefined
    let answer = await enclaveLog.call(known === undefined ? {} : { from: known })
    announce(answer.bootId, terms)
    // In the order of the enclave: the first that witnesses do not refuse is used.
    for (const origin of own) {
      if (answer.log !== null && own.indexOf(answer.log.origin) > own.indexOf(origin)) continue
      try {
        if (answer.log?.origin !== origin) answer = await start(origin, terms)
        await carry(assertStarted(answer, origin), terms)
        return
      } catch (error) {
        if (!isOver(error) || origin === own.at(-1)) throw error
        await assertSameBoot(answer)
        log.error({ msg: 'Abandoned a log', enclave: address, origin, bootId: answer.bootId, ...toReason(error) })
      }
    }
  }

  /** What was wrong with the log of a boot that is over is no reason for the next one to leave it. */
  async function assertSameBoot({ bootId, log: appended }: LogResponse): Promise<void> {
    const now = await enclaveLog.call({ from: appended === null ? 0 : appended.from + appended.entries.length })
    if (now.bootId !== bootId) throw startedAgain(appended?.origin)
  }

  /** From the newest checkpoint that is written: the witnesses have seen none that is newer. */
  async function start(origin: string, terms: EnclaveTerms): Promise<LogResponse> {
    const written = (await store.findLogHead(logs.get(origin, terms).hash))?.written
    const hashes = (written?.hashes ?? []).map(toHex)
    const answer = await enclaveLog
      .call({ start: { origin, checkpoint: written?.note ?? null, hashes } })
      .catch((error: unknown) => {
        const isRefused = error instanceof CoordinatorError && error.details === 'log_refused'
        throw isRefused ? new LogFault('log_refused', 'the enclave does not go on from what is written') : error
      })
    log.info({ msg: 'Started a log', enclave: address, origin, bootId: answer.bootId, size: written?.size ?? 0 })
    return answer
  }

  /** Writes what the enclave appended, has it cosigned, and tells the enclave: that opens its log, and lets it forget. */
  async function carry({ bootId, log: appended }: Started, terms: EnclaveTerms): Promise<void> {
    const kept = logs.get(appended.origin, terms)
    const { writer, cosigner } = kept
    const isNew = !('kept' in state) || state.bootId !== bootId || state.kept !== kept
    if (isNew) cosigner.reset()
    state = { kind: appended.isOpen ? 'open' : 'closed', bootId, kept }
    const size = appended.from + appended.entries.length
    await writer.write(appended, {
      bootId,
      claims: [],
      repeat: (from) => repeat({ bootId, origin: kept.origin, from }),
    })
    if (!appended.isOpen || appended.entries.length > 0) {
      const { note } = await cosigner.cosign({ size }).catch((error: unknown) => {
        throw toRefusal(cosigner.refusal) ?? error
      })
      await enclave.release({ bootId, ...toCosigned(note) })
      if (!appended.isOpen) log.info({ msg: 'Opened a log', enclave: address, origin: kept.origin, bootId, size })
      state = { kind: 'open', bootId, kept }
    }
    const refusal = toRefusal(cosigner.refusal)
    if (refusal !== undefined) throw refusal
  }

  async function repeat({ bootId, origin, from }: { bootId: string; origin: string; from: number }) {
    const answer = await enclaveLog.call({ from })
    if (answer.bootId === bootId && answer.log?.origin === origin) return answer.log
    throw startedAgain(origin)
  }

  /** Witnesses cannot cosign a log that they have not been told of: so its keys are said before anything else. */
  function announce(bootId: string, { logs: attested }: EnclaveTerms) {
    if (announcedBoot === bootId) return
    announcedBoot = bootId
    log.info({ msg: 'Found an enclave with a log', enclave: address, bootId, vkeys: attested?.keys.join(' ') })
  }

  return {
    async step() {
      try {
        await look()
        lastReason = undefined
      } catch (error) {
        const { code, reason } = toReason(error)
        if (state.kind === 'open') state = { ...state, kind: isOver(error) ? 'closed' : 'open' }
        if (lastReason !== `${code} ${reason}`) {
          const line = { msg: 'Could not run a log', enclave: address, code, reason }
          // No spare is left: it takes a person.
          if (isOver(error)) log.error(line)
          else log.warn(line)
        }
        lastReason = `${code} ${reason}`
      } finally {
        // An enclave that is away says nothing about the witnesses: they are asked all the same.
        if ('kept' in state) state.kept.cosigner.refresh()
      }
    },
    get state() {
      return state
    },
    repeat,
  }
}

/** Whether the origin cannot be used by this boot. */
function isOver(error: unknown): boolean {
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

function startedAgain(origin: string | undefined) {
  return new CoordinatorError('log_unavailable', 'the enclave has started again', { details: origin })
}
