import type { LogEntry, StatementEntry } from '@countersign/log'
import type { Finding } from '../report.ts'
import type { SeenLog } from './readLog.ts'
import type { ReceiptFacts } from './receiptFacts.ts'

export type MatchParameters = {
  logs: readonly (SeenLog & { isStale: boolean })[]
  /** A start that is in another log may have its signatures there. */
  isEveryLogRead: boolean
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

/** An entry of the wallet, and which start of an enclave wrote it. */
type Told = { origin: string; index: number; entry: StatementEntry; bootId: string }

/** What the logs say of one statement of one start. */
type Story = Told & { isDropped: boolean; isUnacknowledged: boolean }

/** Holds the entries of a wallet's key against its receipts. */
export function matchEntries(parameters: MatchParameters): Matched {
  const { logs, receipts, mined, isDue, unread } = parameters
  const findings: Finding[] = []
  const counts = new Map(logs.map(({ origin }): [string, LogCounts] => [origin, { entries: 0, proven: 0, dropped: 0 }]))
  const stories = readStories(parameters, findings)
  const living = new Set(logs.flatMap((log) => (log.isStale ? [] : (listBoots(log).at(-1) ?? []))))
  // Two starts may make the same statement, and one of them drop it.
  const kept = new Set(stories.filter(({ isDropped }) => !isDropped).map(({ entry }) => entry.leaf))
  const open: Finding[] = []
  for (const { origin, index, entry, bootId, isDropped, isUnacknowledged } of stories) {
    const { leaf } = entry
    const receipt = receipts.get(leaf)
    const count = counts.get(origin) as LogCounts
    const place = { origin, index, leaf, ...(receipt && { txHash: receipt.txHash }) }
    count.entries += 1
    if (isDropped && receipt !== undefined && !kept.has(leaf)) {
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
    else if (!living.has(bootId)) {
      findings.push({ kind: 'unresolved', ...place, detail: 'the enclave that signed it stopped' })
    } else open.push({ kind: 'hidden', ...place })
  }
  // A receipt that could not be read may be that of an entry; more entries than such receipts cannot all have one.
  const isClear = open.length > unread
  findings.push(...open.map((finding): Finding => (isClear ? finding : { ...finding, kind: 'entry-unmatched' })))
  return { findings, counts }
}

/** One for each statement of each start, whichever logs that start wrote to. */
function readStories({ logs, keyIds, isEveryLogRead }: MatchParameters, findings: Finding[]): Story[] {
  const lie = (origin: string, index: number, detail: string) =>
    findings.push({ kind: 'log-lies', origin, index, detail })
  for (const { origin, size, entries } of logs) {
    if (size > 0 && entries.get(0)?.kind !== 'boot') lie(origin, 0, 'it does not begin with the start of an enclave')
  }
  const told = logs.flatMap((log) => readTold(log, keyIds))
  const boots = logs.flatMap((log) => [...new Set(listBoots(log))])
  const hasMoved = (bootId: string) => !isEveryLogRead || boots.filter((boot) => boot === bootId).length > 1
  const stories = new Map<string, Story>()
  const toName = ({ bootId, entry }: Told) => `${bootId} ${entry.leaf}`
  /** By log too: the last of each. */
  const last = new Map<string, number>()
  for (const one of told) {
    if (one.entry.kind !== 'signature') continue
    last.set(`${one.origin} ${toName(one)}`, one.index)
    // Again where a call was repeated.
    if (!stories.has(toName(one))) stories.set(toName(one), { ...one, isDropped: false, isUnacknowledged: false })
  }
  for (const one of told) {
    const { kind } = one.entry
    if (kind === 'signature') continue
    const [isDropped, isUnacknowledged] = [kind === 'dropped', kind === 'unacknowledged']
    const story = stories.get(toName(one))
    // The log that it left for this one may have been left before its signatures were cosigned.
    if (story === undefined && hasMoved(one.bootId)) stories.set(toName(one), { ...one, isDropped, isUnacknowledged })
    else if (story === undefined || story.isDropped || story.isUnacknowledged) {
      lie(one.origin, one.index, 'it says what became of a signature that it does not have, or says it twice')
    } else if ((last.get(`${one.origin} ${toName(one)}`) ?? 0) > one.index) {
      lie(one.origin, one.index, 'it says what became of a signature, and has it again later')
    } else Object.assign(story, { isDropped, isUnacknowledged })
  }
  return [...stories.values()]
}

/** The entries of the wallet, in their order. */
function readTold({ origin, entries }: SeenLog, keyIds: ReadonlySet<string>): Told[] {
  let bootId = ''
  return sortEntries(entries).flatMap(([index, entry]) => {
    if (entry.kind === 'boot') bootId = entry.bootId
    return isOf(entry, keyIds) ? [{ origin, index, entry, bootId }] : []
  })
}

function listBoots({ entries }: SeenLog): string[] {
  return sortEntries(entries).flatMap(([, entry]) => (entry.kind === 'boot' ? [entry.bootId] : []))
}

function sortEntries(entries: SeenLog['entries']): [number, LogEntry][] {
  return [...entries].toSorted(([a], [b]) => a - b)
}

function isOf(entry: LogEntry, keyIds: ReadonlySet<string>): entry is StatementEntry {
  return entry.kind !== 'boot' && keyIds.has(entry.keyId)
}
