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
type Look = { address: string } & ({ report: MonitorReport } | { error: Failure })

/** The results of one run, as `--json` prints them and the webhook receives them. `error` is set if the state couldn't be written. */
type Turn = { looks: readonly Look[]; exitCode: number; error?: Failure }

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
  let [shown, told] = ['', '']
  for (;;) {
    const looks: Look[] = []
    const logTime = createLogTime(logTimeS === undefined ? undefined : logTimeS * 1000)
    for (const { address, memory } of watched) {
      const request = { ...options, address, manifests, allowMock: isMockAllowed }
      try {
        looks.push({ address, report: await monitorWallet({ fetchBytes, now, wait, memory, logs, logTime }, request) })
      } catch (error) {
        // In later runs, arguments can become invalid because a node lags or because the wallet got its first receipt.
        const isFirst = shown === ''
        if (isFirst && error instanceof VerifierError && error.code === 'invalid_arguments') throw error
        // Even an internal error: what someone published for one wallet must not stop the others.
        looks.push({ address, error: describeError(error) })
      }
    }
    // Before the report, which includes a failed write.
    const turn = toTurn(looks, await keepState(options.stateFile, logs))
    const news = toNews(turn)
    if (news !== shown) show(deps, turn, { isJson })
    shown = news
    const { exitCode } = turn
    // The webhook gets incomplete reports, then every change until all are complete again.
    const isTold = told === '' ? exitCode === COMPLETE : told === news
    if (options.webhook !== undefined && !isTold && (await postWebhook(deps, options.webhook, turn))) {
      told = exitCode === COMPLETE ? '' : news
    }
    if (!options.isFollowing || !(await deps.wait(options.intervalS * 1000))) return exitCode
  }
}

/** Returns the error if the state couldn't be written. */
async function keepState(path: string | undefined, logs: LogsMemory): Promise<Failure | undefined> {
  try {
    await writeState(path, logs)
    return undefined
  } catch (error) {
    return describeError(error)
  }
}

/** The worst exit code of all wallets. */
function toTurn(looks: readonly Look[], error: Failure | undefined): Turn {
  const found = looks.map((look) => ('report' in look ? look.report.conclusion : 'incomplete'))
  const worst = findWorst(error === undefined ? found : [...found, 'incomplete']) ?? 'incomplete'
  return { looks, exitCode: monitorVerdicts[worst].exitCode, ...(error === undefined ? {} : { error }) }
}

/** Leaves out what changes with every block and cosignature. */
function toNews({ looks, error }: Turn): string {
  const news = looks.map((look) => {
    if (!('report' in look)) return look
    const { head: _, logs, ...report } = look.report
    return { ...report, logs: logs?.map(({ size: _size, cosignedAt: _time, ...log }) => log) }
  })
  return JSON.stringify([news, error])
}

function show({ writeOut, writeError }: MonitorCliDeps, turn: Turn, { isJson }: { isJson: boolean }) {
  const { looks, error } = turn
  if (error !== undefined) writeError(toLine(`${error.message} [${error.code}]`))
  if (isJson) return writeOut(toJsonLine(turn))
  for (const look of looks) {
    if ('error' in look) {
      writeError(toLine(`${look.address}: not checked: ${look.error.message} [${look.error.code}]`))
      continue
    }
    const { report } = look
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
async function postWebhook(deps: MonitorCliDeps, url: string, turn: Turn): Promise<boolean> {
  const body = JSON.stringify(turn)
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
