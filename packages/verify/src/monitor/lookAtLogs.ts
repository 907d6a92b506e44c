import { VerifierError } from '../errors.ts'
import { toAnchors } from '../toAnchors.ts'
import type { JudgedSteps } from './judgeSteps.ts'
import { checkLogs } from './log/checkLogs.ts'
import { createLogSource } from './log/createLogSource.ts'
import { createLogsMemory } from './log/logMemory.ts'
import { createLogTime, spendLogTime } from './log/logTime.ts'
import type { MonitorDeps, MonitorRequest } from './monitorRequest.ts'
import type { Finding, LogReport } from './report.ts'

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
        ...{ source: createLogSource({ ...deps, memory, isOver }, base), policies, configHashes },
        ...{ headTime, graceS, mined },
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
