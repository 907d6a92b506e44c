import type { FetchBytes } from '../fetchBytes.ts'
import type { JudgeRequest } from './judgeReceipt.ts'
import type { MonitorMemory } from './judgeSteps.ts'
import type { LogsMemory } from './log/logMemory.ts'
import type { LogTime } from './log/logTime.ts'

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
  chainId?: number
  /** A node of the chain that has the events, where that is another. */
  eventsRpc?: string
  /** The contract on that chain, in lower case, where no manifest names it. */
  contract?: string
  /** Signatures with a lower nonce, or mined in an earlier block, are from before there were receipts. */
  from?: { nonce: number } | { block: number }
  /** How long after it was mined a transaction may be without an event, in seconds; 600 unless given. By the chain, or by that of the events where it is behind. */
  graceS?: number
  /** So many receipts are judged in one look; all unless given. */
  maxReceipts?: number
  /** The service that serves the logs, if it has any: they are below `/log`. */
  log?: string
  /** Addresses of witnesses, along with those in the manifests. The monitor asks them directly for the newest checkpoint that they cosigned. */
  witnessUrls?: readonly string[]
  /** A log with more entries that were not read before is not read; 10 million unless given. */
  maxLogEntries?: number
}
