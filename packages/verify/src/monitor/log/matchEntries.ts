import type { LogEntry, StatementEntry } from '@countersign/log'
import type { Finding } from '../report.ts'
import type { SeenLog } from './readLog.ts'
import type { ReceiptFacts } from './receiptFacts.ts'

export type MatchParameters = {
  logs: readonly (SeenLog & { isStale: boolean })[]
  /** All that could be read of the wallet, by the leaves of their statements. */
  receipts: ReadonlyMap<string, ReceiptFacts>
  /** Receipts of the wallet that could not be read: each may be of one entry. */
  unread: number
  keyIds: ReadonlySet<string>
  /** Names of what is mined on the chain that is looked at. */
  mined: ReadonlySet<string>
  /** Whether a receipt of what was signed then should be there. */
  isDue: (timeMs: number) => boolean
}

type LogCounts = { entries: number; proven: number; dropped: number }

export type Matched = {
  findings: readonly Finding[]
  /** By origin. */
  counts: ReadonlyMap<string, LogCounts>
}

/** What the log says of one statement. */
type Story = {
  origin: string
  index: number
  entry: StatementEntry
  /** Its boot is over, as far as can be seen. */
  isDead: boolean
  isDropped: boolean
  isUnacknowledged: boolean
}

/** Holds the entries of a wallet's key against its receipts. */
export function matchEntries(parameters: MatchParameters): Matched {
  const { logs, receipts, mined, isDue, unread } = parameters
  const findings: Finding[] = []
  const counts = new Map<string, LogCounts>()
  const stories = new Map<string, Story>()
  for (const log of logs) {
    counts.set(log.origin, { entries: 0, proven: 0, dropped: 0 })
    readStories(log, { ...parameters, stories, findings })
  }
  const open: Finding[] = []
  for (const [leaf, { origin, index, entry, isDead, isDropped, isUnacknowledged }] of stories) {
    const receipt = receipts.get(leaf)
    const count = counts.get(origin) as LogCounts
    const place = { origin, index, leaf, ...(receipt && { txHash: receipt.txHash }) }
    count.entries += 1
    if (isDropped && receipt !== undefined) {
      const what = mined.has(receipt.txHash) ? 'is mined' : 'has a receipt'
      findings.push({ kind: 'log-lies', ...place, detail: `it says that this was erased, and it ${what}` })
    } else if (isDropped) count.dropped += 1
    else if (receipt !== undefined) count.proven += 1
    else if (!isDue(entry.timeMs)) findings.push({ kind: 'entry-awaited', ...place })
    else if (isUnacknowledged)
      findings.push({
        kind: 'unresolved',
        ...place,
        detail: 'it was given out, and nobody confirmed that its receipt is kept',
      })
    else if (isDead) findings.push({ kind: 'unresolved', ...place, detail: 'the enclave that signed it stopped' })
    else open.push({ kind: 'hidden', ...place })
  }
  // A receipt that could not be read may be that of an entry; more entries than such receipts cannot all have one.
  const isClear = open.length > unread
  findings.push(...open.map((finding): Finding => (isClear ? finding : { ...finding, kind: 'entry-unmatched' })))
  return { findings, counts }
}

function readStories(
  log: SeenLog & { isStale: boolean },
  { keyIds, stories, findings }: MatchParameters & { stories: Map<string, Story>; findings: Finding[] },
): void {
  const { origin } = log
  const entries = [...log.entries].toSorted(([a], [b]) => a - b)
  const lie = (index: number, detail: string) => findings.push({ kind: 'log-lies', origin, index, detail })
  const lastBoot = entries.findLast(([, { kind }]) => kind === 'boot')?.[0] ?? 0
  let boot = -1
  if (log.size > 0 && entries[0]?.[0] !== 0) lie(0, 'it does not begin with the start of an enclave')
  for (const [index, entry] of entries) {
    if (entry.kind === 'boot') boot = index
    if (!isOf(entry, keyIds)) continue
    const story = stories.get(entry.leaf)
    if (entry.kind === 'signature') {
      if (story !== undefined) lie(index, `it has two entries for one signature, the other at ${story.index}`)
      else {
        const isDead = index < lastBoot || log.isStale
        stories.set(entry.leaf, { origin, index, entry, isDead, isDropped: false, isUnacknowledged: false })
      }
      continue
    }
    // Only the boot that signed can say what became of it.
    const isOfBoot = story?.origin === origin && story.index > boot
    if (story === undefined || !isOfBoot || story.isDropped || story.isUnacknowledged) {
      lie(index, 'it says what became of a signature that it does not have, or says it twice')
    } else if (entry.kind === 'dropped') story.isDropped = true
    else story.isUnacknowledged = true
  }
}

function isOf(entry: LogEntry, keyIds: ReadonlySet<string>): entry is StatementEntry {
  return entry.kind !== 'boot' && keyIds.has(entry.keyId)
}
