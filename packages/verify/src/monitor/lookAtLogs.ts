import { toAnchors } from '../toAnchors.ts'
import type { JudgedSteps } from './judgeSteps.ts'
import { checkLogs, listLogs } from './log/checkLogs.ts'
import { createLogSource, type LogSource } from './log/createLogSource.ts'
import { LogFault } from './log/logFault.ts'
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
  const { logWitnesses: policies = [] } = toAnchors(request.manifests)
  const isInReceipts = judged.receipts.some(({ isAccepted, log }) => isAccepted && log !== undefined)
  const { log: base } = request
  if (base === undefined) {
    const detail = 'its address was not given'
    return { logs: undefined, findings: isInReceipts ? [{ kind: 'log-not-checked', detail }] : [] }
  }
  const ask = <Result>(work: (source: LogSource) => Promise<Result>) =>
    spendLogTime({ now, logTime }, (isOver) => work(createLogSource({ ...deps, memory, isOver }, base)))
  const listed = await ask(listLogs)
  const isListed = !(listed instanceof LogFault) && listed.length > 0
  if (!isListed && !isInReceipts && policies.length === 0 && memory.known.size === 0) {
    return { logs: undefined, findings: [] }
  }
  const rest = await judgeRest()
  const checked = await ask((source) =>
    checkLogs(
      { ...deps, memory },
      {
        ...{ source, listed, policies, headTime, graceS, mined },
        receipts: [...judged.receipts, ...rest.receipts],
        unread: judged.unread + rest.unread,
        witnessUrls: request.witnessUrls ?? [],
        maxEntries: request.maxLogEntries ?? MAX_LOG_ENTRIES,
      },
    ),
  )
  return { logs: checked?.logs, findings: [...rest.findings, ...(checked?.findings ?? [])] }
}
