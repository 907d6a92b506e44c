import { ServiceError, withinTimeLimit } from '@countersign/protocol'
import {
  createFetchBytes,
  createLogTime,
  createMonitorMemory,
  describeError,
  describeReport,
  type FetchDeps,
  findWorst,
  type LogsMemory,
  type MonitorReport,
  monitorVerdicts,
  monitorWallet,
  toPrintable,
  toPrintableJson,
  VerifierError,
} from '@countersign/verify'
import { readState, writeState } from '../files.ts'
import { readManifest } from '../verify.ts'
import { MONITOR_HELP } from './help.ts'
import { type MonitorOptions, parseMonitorOptions } from './parseMonitorOptions.ts'

export type MonitorCliDeps = FetchDeps & {
  now: () => Date
  writeOut: (text: string) => void
  writeError: (text: string) => void
  /** Resolves after the delay. False if the program should end. */
  wait: (ms: number) => Promise<boolean>
}

const COMPLETE = monitorVerdicts.complete.exitCode
const BAD_INPUT = 2

type Failure = { code: string; message: string }

/** The result of checking one wallet once. */
type WalletResult = { address: string } & ({ report: MonitorReport } | { error: Failure })

/** The results of one run, as `--json` prints them and the webhook receives them. `error` is set if the state couldn't be written. */
type MonitorRun = { looks: readonly WalletResult[]; exitCode: number; error?: Failure }

/** Runs the whole program except for its process and returns the exit code. Never throws. */
export async function runMonitor(deps: MonitorCliDeps, argv: readonly string[]): Promise<number> {
  const isJson = argv.includes('--json')
  try {
    const options = parseMonitorOptions(argv)
    if (options === undefined) {
      deps.writeOut(MONITOR_HELP)
      return 0
    }
    return await follow(deps, options, { isJson })
  } catch (error) {
    const { code, message } = describeError(error)
    if (isJson) deps.writeOut(toJsonLine({ error: { code, message } }))
    else deps.writeError(toLine(`${message} [${code}]`))
    return error instanceof ServiceError ? BAD_INPUT : monitorVerdicts.incomplete.exitCode
  }
}

async function follow(deps: MonitorCliDeps, options: MonitorOptions, { isJson }: { isJson: boolean }): Promise<number> {
  const manifests = [...(await readManifest(options.manifestFile)), options.anchors]
  const logs = await readState(options.stateFile)
  const watched = options.addresses.map((address) => ({ address, memory: createMonitorMemory() }))
  const fetchBytes = createFetchBytes(deps)
  const { now, wait } = deps
  const { isMockAllowed, logTimeS } = options
  let [printed, notified] = ['', '']
  for (;;) {
    const looks: WalletResult[] = []
    const logTime = createLogTime(logTimeS === undefined ? undefined : logTimeS * 1000)
    for (const { address, memory } of watched) {
      const request = { ...options, address, manifests, allowMock: isMockAllowed }
      try {
        looks.push({ address, report: await monitorWallet({ fetchBytes, now, wait, memory, logs, logTime }, request) })
      } catch (error) {
        // In later runs, arguments can become invalid because a node lags or because the wallet got its first receipt.
        const isFirst = printed === ''
        if (isFirst && error instanceof VerifierError && error.code === 'invalid_arguments') throw error
        // Even an internal error: what someone published for one wallet must not stop the others.
        looks.push({ address, error: describeError(error) })
      }
    }
    // Before the report, which includes a failed write.
    const run = toRun(looks, await storeState(options.stateFile, logs))
    const state = toComparableState(run)
    if (state !== printed) print(deps, run, { isJson })
    printed = state
    const { exitCode } = run
    // The webhook gets incomplete reports, then every change until all are complete again.
    const isNotified = notified === '' ? exitCode === COMPLETE : notified === state
    if (options.webhook !== undefined && !isNotified && (await postWebhook(deps, options.webhook, run))) {
      notified = exitCode === COMPLETE ? '' : state
    }
    if (!options.isFollowing || !(await deps.wait(options.intervalS * 1000))) return exitCode
  }
}

/** Returns the error if the state couldn't be written. */
async function storeState(path: string | undefined, logs: LogsMemory): Promise<Failure | undefined> {
  try {
    await writeState(path, logs)
    return undefined
  } catch (error) {
    return describeError(error)
  }
}

/** The worst exit code of all wallets. */
function toRun(looks: readonly WalletResult[], error: Failure | undefined): MonitorRun {
  const found = looks.map((result) => ('report' in result ? result.report.conclusion : 'incomplete'))
  const worst = findWorst(error === undefined ? found : [...found, 'incomplete']) ?? 'incomplete'
  return { looks, exitCode: monitorVerdicts[worst].exitCode, ...(error === undefined ? {} : { error }) }
}

/** Leaves out what changes with every block and cosignature. */
function toComparableState({ looks, error }: MonitorRun): string {
  const state = looks.map((result) => {
    if (!('report' in result)) return result
    const { head: _, logs, ...report } = result.report
    return { ...report, logs: logs?.map(({ size: _size, cosignedAt: _time, ...log }) => log) }
  })
  return JSON.stringify([state, error])
}

function print({ writeOut, writeError }: MonitorCliDeps, run: MonitorRun, { isJson }: { isJson: boolean }) {
  const { looks, error } = run
  if (error !== undefined) writeError(toLine(`${error.message} [${error.code}]`))
  if (isJson) return writeOut(toJsonLine(run))
  for (const result of looks) {
    if ('error' in result) {
      writeError(toLine(`${result.address}: not checked: ${result.error.message} [${result.error.code}]`))
      continue
    }
    const { report } = result
    const { headline, findings, logs, unseen } = describeReport(report)
    const lines = [
      `${report.address} on chain ${report.chainId}, up to block ${report.head.number} of ${report.head.time.toISOString()}`,
      `  ${headline}`,
      ...logs.map((text) => `  ${text}`),
      ...findings.map(({ severity, text }) => `  ${severity}: ${text}`),
      `  ${unseen}`,
    ]
    writeOut(`${lines.map(toPrintable).join('\n')}\n`)
  }
}

/**
 * Returns whether the webhook accepted the report. Otherwise prints an error, and the next run tries again. Prints only the host, because
 * the path is often secret.
 */
async function postWebhook(deps: MonitorCliDeps, url: string, run: MonitorRun): Promise<boolean> {
  const body = JSON.stringify(run)
  const headers = { 'content-type': 'application/json' }
  try {
    const { ok, status } = await withinTimeLimit(deps.timeoutMs, async (signal) => {
      const response = await deps.fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
      await response.body?.cancel()
      return response
    })
    if (!ok) deps.writeError(toLine(`the webhook at ${new URL(url).host} returned ${status}`))
    return ok
  } catch {
    deps.writeError(toLine(`the webhook at ${new URL(url).host} is unreachable`))
    return false
  }
}

/** One line per run. In JSON, only indentation contains line feeds. */
function toJsonLine(value: unknown): string {
  return `${toPrintableJson(value).replace(/\n */g, ' ')}\n`
}

function toLine(text: string): string {
  return `countersign-monitor: ${toPrintable(text)}\n`
}
