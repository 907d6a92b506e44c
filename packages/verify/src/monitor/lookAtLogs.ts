import { VerifierError } from '../errors.ts'
import type { FetchBytes } from '../fetchBytes.ts'
import { toAnchors } from '../toAnchors.ts'
import type { Finding } from './findings.ts'
import type { JudgeRequest } from './judgeReceipt.ts'
import type { JudgedSteps, MonitorMemory } from './judgeSteps.ts'
import { checkLogs } from './log/checkLogs.ts'
import { createLogSource } from './log/createLogSource.ts'
import { createLogsMemory, type LogsMemory } from './log/logMemory.ts'
import type { LogReport } from './report.ts'

export type LookAtLogsParameters = {
  request: MonitorRequest
  /** What the chain has of the wallet. */
  judged: JudgedSteps
  /** Judges what the chain has not: off-chain signatures and the like are in the log too. */
  judgeRest: () => Promise<JudgedSteps>
  headTime: Date
  graceS: number
  mined: ReadonlySet<string>
}

export type LookedAtLogs = { logs: readonly LogReport[] | undefined; findings: readonly Finding[] }

const MAX_LOG_ENTRIES = 10_000_000

/** What logs say of a wallet, if there are any. */
export async function lookAtLogs(
  deps: Pick<MonitorDeps, 'fetchBytes' | 'now' | 'logs' | 'logTime' | 'wait'>,
  parameters: LookAtLogsParameters,
): Promise<LookedAtLogs> {
  const { request, judged, judgeRest, headTime, graceS, mined } = parameters
  const { now, logs: memory = createLogsMemory(), logTime = createLogTime() } = deps
  const { logWitnesses: policies = [], configHashes = [] } = toAnchors(request.manifests)
  const { log: base } = request
  if (base === undefined) {
    const detail = await findLog(parameters)
    return { logs: undefined, findings: detail === undefined ? [] : [{ kind: 'log-not-checked', detail }] }
  }
  // All receipts, whatever the service lists: it can hide a log, and not that the settings in receipts name it.
  const rest = await judgeRest()
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
        receipts: [...judged.receipts, ...rest.receipts],
        unread: judged.unread + rest.unread,
        witnessUrls: listWitnessUrls(request),
        maxEntries: request.maxLogEntries ?? MAX_LOG_ENTRIES,
      },
    ),
  )
  return { logs: checked?.logs, findings: [...rest.findings, ...(checked?.findings ?? [])] }
}

/** The addresses from the reader and the manifests. The signatures identify the witness at each. */
function listWitnessUrls({ manifests, witnessUrls = [] }: MonitorRequest): string[] {
  const urls = [...witnessUrls, ...manifests.flatMap((manifest) => manifest.witnessUrls ?? [])]
  return [...new Set(urls.map((url) => url.replace(/\/+$/, '')))]
}

/** Why there is, or may be, a log that no address was given of. The look is at the chain, and what is not on it does not end it. */
async function findLog({ judged, judgeRest }: LookAtLogsParameters): Promise<string | undefined> {
  try {
    return hasLog(judged) || hasLog(await judgeRest()) ? 'its address was not given' : undefined
  } catch (error) {
    if (!(error instanceof VerifierError)) throw error
    return `whether there is one is not known: ${error.message}`
  }
}

function hasLog({ receipts }: JudgedSteps): boolean {
  return receipts.some(({ isAccepted, log }) => isAccepted && log !== undefined)
}

export type MonitorDeps = {
  fetchBytes: FetchBytes
  now: () => Date
  /** What earlier looks found out for good, so that the next asks only for what is new. */
  memory?: MonitorMemory
  /** The same of logs, for all wallets. A log that does not continue what it showed before is found out by it. */
  logs?: LogsMemory
  /** How long logs are read; what they did not answer by then is in the report. An hour for each look unless given. */
  logTime?: LogTime
  /** Resolves after so long; false where the look is to end. Without it, a log that wants slower questions, or whose witnesses are ahead of it, is not read to its end. */
  wait?: (ms: number) => Promise<boolean>
  onProgress?: (progress: { judged: number; of: number }) => void
}

export type MonitorRequest = JudgeRequest & {
  /** The wallet, in lower case. */
  address: string
  /** A node of the chain on which the wallet is looked at. */
  rpc: string
  /** The chain that this node must be of. Without it, any chain will do. */
  chainId?: number | undefined
  /** A node of the chain that has the events, where that is another. */
  eventsRpc?: string | undefined
  /** The contract on that chain, in lower case, where no manifest names it. */
  contract?: string | undefined
  /** Signatures with a lower nonce, or mined in an earlier block, are from before there were receipts. */
  from?: { nonce: number } | { block: number } | undefined
  /** How long after it was mined a transaction may be without an event, in seconds; 600 unless given. By the chain, or by that of the events where it is behind. */
  graceS?: number | undefined
  /** So many receipts are judged in one look; all unless given. */
  maxReceipts?: number | undefined
  /** The service that serves the logs, if it has any: they are below `/log`. */
  log?: string | undefined
  /** Addresses of witnesses, along with those in the manifests. The monitor asks them directly for the newest checkpoint that they cosigned. */
  witnessUrls?: readonly string[] | undefined
  /** A log with more entries that were not read before is not read; 10 million unless given. */
  maxLogEntries?: number | undefined
}

/** How long logs may still be read: a service that is slow on purpose must not keep back what the chain shows. */
export type LogTime = { leftMs: number }

/** More than a log of as many entries as one look reads takes, at the rate at which a service answers by default. */
const DEFAULT_MS = 4 * 3_600_000

/** One for all wallets that are looked at together; four hours unless given. */
export function createLogTime(leftMs: number = DEFAULT_MS): LogTime {
  return { leftMs }
}

/** Takes from it what the work needs, which is to end when `isOver` says so. */
async function spendLogTime<Result>(
  { now, logTime }: { now: () => Date; logTime: LogTime },
  work: (isOver: () => boolean) => Promise<Result>,
): Promise<Result> {
  const startedMs = now().getTime()
  // A clock that is put back gives no time.
  const toSpentMs = () => Math.max(0, now().getTime() - startedMs)
  try {
    return await work(() => toSpentMs() >= logTime.leftMs)
  } finally {
    logTime.leftMs -= toSpentMs()
  }
}
