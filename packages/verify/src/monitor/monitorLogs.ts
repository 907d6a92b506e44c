import { VerifierError } from '../errors.ts'
import type { FetchBytes } from '../fetchBytes.ts'
import type { AnchoredTree } from '../findAnchors.ts'
import { toAnchors } from '../toAnchors.ts'
import { checkCounts } from './checkCounts.ts'
import type { CheckReceiptsRequest } from './checkReceipts.ts'
import type { CheckedFacts, CheckedSteps, MonitorMemory } from './checkSteps.ts'
import type { Finding } from './findings.ts'
import { checkLogs } from './log/checkLogs.ts'
import { createLogSource } from './log/createLogSource.ts'
import { createLogsMemory, type LogsMemory } from './log/logMemory.ts'
import type { LogReport } from './report.ts'

export type MonitorLogsParameters = {
  request: MonitorRequest
  /** The wallet's checked receipts on the chain. */
  onChain: CheckedSteps
  /** Checks the other receipts: the log also has off-chain signatures and other chains. */
  checkRest: () => Promise<CheckedSteps>
  headTime: Date
  graceS: number
  mined: ReadonlySet<string>
  /** The trees on the chain. */
  trees: readonly AnchoredTree[]
  /** Whether all anchors were read. */
  isWhole: boolean
}

export type MonitoredLogs = { logs: readonly LogReport[] | undefined; findings: readonly Finding[] }

const MAX_LOG_ENTRIES = 10_000_000

/** Checks the logs for a wallet. `logs` is undefined if there are none. */
export async function monitorLogs(
  deps: Pick<MonitorDeps, 'fetchBytes' | 'now' | 'logs' | 'logTime' | 'wait'>,
  parameters: MonitorLogsParameters,
): Promise<MonitoredLogs> {
  const { request, onChain, checkRest, headTime, graceS, mined, trees, isWhole } = parameters
  const { now, logs: memory = createLogsMemory(), logTime = createLogTime() } = deps
  const { logWitnesses: policies = [], configHashes = [] } = toAnchors(request.manifests)
  const { log: base } = request
  if (base === undefined) {
    const detail = await findLog(parameters)
    const unchecked: Finding[] = detail === undefined ? [] : [{ kind: 'log-not-checked', detail }]
    return { logs: undefined, findings: [...unchecked, ...checkAccepted(onChain.receipts)] }
  }
  // All receipts, independent of the list from the service: it can hide a log, but not the settings in receipts that name it.
  const rest = await checkRest()
  const receipts = [...onChain.receipts, ...rest.receipts]
  const checked = await spendLogTime({ now, logTime }, (isOver) =>
    checkLogs(
      { ...deps, memory },
      {
        source: createLogSource({ ...deps, memory, isOver }, base),
        policies,
        configHashes,
        headTime,
        graceS,
        mined,
        receipts,
        unread: isWhole ? onChain.unread + rest.unread : Number.POSITIVE_INFINITY,
        trees,
        witnessUrls: listWitnessUrls(request),
        maxEntries: request.maxLogEntries ?? MAX_LOG_ENTRIES,
      },
    ),
  )
  const findings = [...rest.findings, ...checkAccepted(receipts), ...(checked?.findings ?? [])]
  return { logs: checked?.logs, findings }
}

function checkAccepted(receipts: readonly CheckedFacts[]): Finding[] {
  return checkCounts(receipts.filter(({ isAccepted }) => isAccepted))
}

/** The addresses from the reader and the manifests. The signatures identify the witness at each. */
function listWitnessUrls({ manifests, witnessUrls = [] }: MonitorRequest): string[] {
  const urls = [...witnessUrls, ...manifests.flatMap((manifest) => manifest.witnessUrls ?? [])]
  return [...new Set(urls.map((url) => url.replace(/\/+$/, '')))]
}

/** Why a log exists or may exist, though the caller gave no address. Errors about receipts outside this chain don't end the run. */
async function findLog({ onChain, checkRest }: MonitorLogsParameters): Promise<string | undefined> {
  try {
    return hasLog(onChain) || hasLog(await checkRest()) ? 'its address was not given' : undefined
  } catch (error) {
    if (!(error instanceof VerifierError)) throw error
    return `whether there is a log is unknown: ${error.message}`
  }
}

function hasLog({ receipts }: CheckedSteps): boolean {
  return receipts.some(({ isAccepted, log }) => isAccepted && log !== undefined)
}

export type MonitorDeps = {
  fetchBytes: FetchBytes
  now: () => Date
  /** Final results of earlier runs, so that the next run requests only what is new. */
  memory?: MonitorMemory
  /** The state of logs, for all wallets. It detects a log that doesn't continue its earlier state. */
  logs?: LogsMemory
  /** The time limit for reading logs and anchors; unread parts are in the report. Default: an hour for each run. */
  logTime?: LogTime
  /**
   * Resolves after this time; false if the run should end. Without it, the monitor doesn't wait: a log is not fully read if the service
   * limits
   * the request rate or if its witnesses are ahead of it.
   */
  wait?: (ms: number) => Promise<boolean>
  onProgress?: (progress: { checked: number; of: number }) => void
}

export type MonitorRequest = CheckReceiptsRequest & {
  /** The wallet, in lower case. */
  address: string
  /** A node of the monitored chain. */
  rpc: string
  /** The chain that this node must serve. Undefined accepts any. */
  chainId?: number | undefined
  /** A node of the chain with the events or checkpoints, if that is another. */
  eventsRpc?: string | undefined
  /** The contract on that chain, in lower case, if no manifest names it. */
  contract?: string | undefined
  /** Ignores signatures with a lower nonce, or mined in an earlier block, from before there were receipts. */
  from?: { nonce: number } | { block: number } | undefined
  /**
   * How long after mining an event or checkpoint may be missing, in seconds; 600 by default. Measured by the chain, or by the chain with the
   * events if that is behind. Checkpoints count once their block is final.
   */
  graceS?: number | undefined
  /** The maximum number of receipts checked in one run. Default: all. */
  maxReceipts?: number | undefined
  /** The service with the logs, below `/log`. */
  log?: string | undefined
  /** Addresses of witnesses, along with those in the manifests. The monitor asks them directly for the newest checkpoint that they cosigned. */
  witnessUrls?: readonly string[] | undefined
  /** A log with more unread entries is not read. Default: 10 million. */
  maxLogEntries?: number | undefined
}

/** The remaining time for reading logs, so that a deliberately slow service can't delay the results from the chain. */
export type LogTime = { leftMs: number }

/** More than one run needs for the largest log, at a service's default rate limit. */
const DEFAULT_MS = 4 * 3_600_000

/** Shared by all wallets of one run; four hours by default. */
export function createLogTime(leftMs: number = DEFAULT_MS): LogTime {
  return { leftMs }
}

/** Subtracts the time that the work takes. The work should end when `isOver` returns true: after this share of the time. */
export async function spendLogTime<Result>(
  { now, logTime, share = 1 }: { now: () => Date; logTime: LogTime; share?: number },
  work: (isOver: () => boolean) => Promise<Result>,
): Promise<Result> {
  const startedMs = now().getTime()
  // A clock that goes back must not add time.
  const toSpentMs = () => Math.max(0, now().getTime() - startedMs)
  try {
    return await work(() => toSpentMs() >= share * logTime.leftMs)
  } finally {
    logTime.leftMs -= toSpentMs()
  }
}
