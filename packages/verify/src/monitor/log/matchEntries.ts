import type { StatementEntry } from '@countersign/log'
import type { ReceiptFacts } from '../checkReceipts.ts'
import type { Finding } from '../findings.ts'
import { listEntries } from './logMemory.ts'
import type { SeenLog } from './readLog.ts'

export type MatchParameters = HistoriesParameters & {
  /** The wallet's readable receipts, by their statements' leaves. */
  receipts: ReadonlyMap<string, ReceiptFacts>
  /** The number of unreadable receipts. Each may belong to one entry. */
  unread: number
  /** Hashes mined on the monitored chain. */
  mined: ReadonlySet<string>
  /** Whether a signature of this time should have a receipt by now. */
  isDue: (timeMs: number) => boolean
}

type LogCounts = { entries: number; proven: number; dropped: number }

export type MatchResult = {
  findings: readonly Finding[]
  /** By origin. */
  counts: ReadonlyMap<string, LogCounts>
}

/** Compares the entries of a wallet's key with its receipts. */
export function matchEntries(parameters: MatchParameters): MatchResult {
  const { logs, receipts, mined, unread, isWhole } = parameters
  const { histories, lies } = readHistories(parameters)
  const findings: Finding[] = [...lies]
  const counts = new Map(logs.map(({ origin }) => [origin, { entries: 0, proven: 0, dropped: 0 }]))
  const open: Finding[] = []
  // If several starts signed one statement, one may have released it while the others erased it.
  const givenOut = new Set(histories.filter((history) => !isErased(history)).map(({ leaf }) => leaf))
  for (const history of histories) {
    const { origin, index, leaf } = history
    const count = counts.get(origin) as LogCounts
    const receipt = receipts.get(leaf)
    const place = { origin, index, leaf }
    count.entries += 1
    // An enclave start in an unread log may have released the signature, unless the receipt names the start that erased it.
    const isOfStart = receipt?.log?.bootId === history.bootId
    if (receipt !== undefined && isErased(history) && (isOfStart || (isWhole && !givenOut.has(leaf)))) {
      const { txHash } = receipt
      const what = mined.has(txHash) ? 'is mined' : 'has a receipt'
      findings.push({ kind: 'log-lies', ...place, txHash, detail: `it says that this was erased, but it ${what}` })
    } else if (isErased(history)) count.dropped += 1
    else if (receipt !== undefined) count.proven += 1
    else {
      const finding: Finding = { ...place, ...explainUnmatched(history, parameters) }
      if (finding.kind === 'hidden') open.push(finding)
      else findings.push(finding)
    }
  }
  // Each unreadable receipt may belong to one entry. If there are more entries than such receipts, some have none.
  const isClear = open.length > unread
  for (const finding of open) findings.push(isClear ? finding : { ...finding, kind: 'entry-unmatched' })
  return { findings, counts }
}

/** An erased entry states that its start never released the signature, under any of its entries: `log-v1.md` §1. */
function isErased({ dropped, unacknowledged }: StatementHistory): boolean {
  return dropped > 0 && unacknowledged === 0
}

/** The finding for a signature without a receipt. */
function explainUnmatched(
  { timeMs, unacknowledged, isEnded }: StatementHistory,
  { isDue }: Pick<MatchParameters, 'isDue'>,
): Pick<Finding, 'kind' | 'detail'> {
  if (!isDue(timeMs)) return { kind: 'entry-awaited' }
  if (unacknowledged > 0) {
    return { kind: 'unresolved', detail: 'it was released, but nothing confirms that its receipt is stored' }
  }
  if (isEnded) return { kind: 'unresolved', detail: 'the enclave that signed it stopped' }
  return { kind: 'hidden' }
}

/** The entries of all logs about one statement of one enclave start, `log-v1.md` §1. */
type StatementHistory = {
  leaf: string
  bootId: string
  /** The position of its first entry. */
  origin: string
  index: number
  /** The entry's date, or when it was first seen, if that was earlier. */
  timeMs: number
  /** How many entries record its signing: several if a call was repeated. An unread log may have any number. */
  signed: number
  dropped: number
  unacknowledged: number
  /** Whether its start has ended, as far as the logs show. */
  isEnded: boolean
}

type HistoriesParameters = {
  logs: readonly (SeenLog & { isStale: boolean })[]
  /** Whether these are all logs with entries. */
  isWhole: boolean
  keyIds: ReadonlySet<string>
}

type LocatedEntry = Pick<StatementHistory, 'origin' | 'index' | 'timeMs'> & { bootId: string; entry: StatementEntry }

/** Reads the history of each statement of these keys. It continues in another log if its start changes logs. */
function readHistories({ logs, keyIds, isWhole }: HistoriesParameters): {
  histories: readonly StatementHistory[]
  lies: readonly Finding[]
} {
  const histories = new Map<string, StatementHistory>()
  /** Indexes of signatures, by origin, start and leaf. */
  const newest = new Map<string, number>()
  /** Histories with signatures in several logs. */
  const inSeveral = new Set<StatementHistory>()
  const lies: Finding[] = []
  const lie = (origin: string, index: number, detail: string) => lies.push({ kind: 'log-lies', origin, index, detail })
  const ended = findEnded(logs)
  const moved = findMoved(logs)
  const entries = logs.flatMap((log) => {
    if (log.size > 0 && log.entries.get(0)?.kind !== 'boot') {
      lie(log.origin, 0, 'it does not begin with the start of an enclave')
    }
    return locateEntries(log, keyIds)
  })
  for (const { origin, index, timeMs, bootId, entry } of entries.filter(isSignature)) {
    const { leaf } = entry
    newest.set(`${origin} ${bootId} ${leaf}`, index)
    const history = histories.get(`${bootId} ${leaf}`)
    if (history !== undefined) {
      history.signed += 1
      if (history.origin !== origin) inSeveral.add(history)
    } else {
      const isEnded = ended.has(bootId)
      const counts = { signed: 1, dropped: 0, unacknowledged: 0 }
      histories.set(`${bootId} ${leaf}`, { leaf, bootId, origin, index, timeMs, isEnded, ...counts })
    }
  }
  for (const { origin, index, timeMs, bootId, entry } of entries.filter((one) => !isSignature(one))) {
    const { leaf } = entry
    const history = histories.get(`${bootId} ${leaf}`)
    if (history === undefined && (moved.has(bootId) || !isWhole)) {
      // The signature is in a log that was not read, or that the enclave abandoned before witnesses cosigned it.
      const signed = isWhole ? 1 : Number.POSITIVE_INFINITY
      const counts = { signed, dropped: 0, unacknowledged: 0, [entry.kind]: 1 }
      histories.set(`${bootId} ${leaf}`, { leaf, bootId, origin, index, timeMs, isEnded: ended.has(bootId), ...counts })
      continue
    }
    const isLeft = history !== undefined && history.dropped + history.unacknowledged < history.signed
    if (!isLeft) {
      lie(origin, index, 'it reports the fate of a signature that it does not have')
      continue
    }
    if (entry.kind === 'unacknowledged') {
      history.unacknowledged += 1
      continue
    }
    history.dropped += 1
    const again = newest.get(`${origin} ${bootId} ${leaf}`) ?? index
    if (again > index) lie(origin, again, 'it has an entry that was erased before')
    // Before changing logs, a start erases its unreleased signatures. A signature that appears in the next log too was released.
    if (inSeveral.has(history)) lie(origin, index, 'it says that this was erased, but its start signed it in two logs')
  }
  return { histories: [...histories.values()], lies }
}

function isSignature({ entry }: LocatedEntry): boolean {
  return entry.kind === 'signature'
}

/** The entries of these keys, each with its enclave start. */
function locateEntries(log: SeenLog, keyIds: ReadonlySet<string>): LocatedEntry[] {
  const { origin } = log
  let bootId = ''
  return listEntries(log).flatMap(({ index, entry, timeMs }) => {
    if (entry.kind === 'boot') bootId = entry.bootId
    return 'keyId' in entry && keyIds.has(entry.keyId) ? [{ origin, index, timeMs, bootId, entry }] : []
  })
}

type BootRecord = { bootId: string; timeMs: number; datedMs: number; isEnded: boolean }

/** Starts followed by another one in the last log that they wrote to, or whose log is stale. */
function findEnded(logs: HistoriesParameters['logs']): ReadonlySet<string> {
  const boots = logs.flatMap(listBoots)
  const isLast = (boot: BootRecord) => !boots.some((other) => other.bootId === boot.bootId && isLater(other, boot))
  const live = new Set(boots.filter((boot) => !boot.isEnded && isLast(boot)).map(({ bootId }) => bootId))
  return new Set(boots.map(({ bootId }) => bootId).filter((bootId) => !live.has(bootId)))
}

function listBoots(log: HistoriesParameters['logs'][number]): BootRecord[] {
  const boots = listEntries(log).flatMap(({ entry, timeMs }) =>
    entry.kind === 'boot' ? [{ bootId: entry.bootId, timeMs, datedMs: entry.timeMs }] : [],
  )
  return boots.map((boot, at) => {
    const isEnded = log.isStale || boots.slice(at).some((later) => later.bootId !== boot.bootId)
    return { ...boot, isEnded }
  })
}

/**
 * Requires both times, because each can be manipulated. The host sets the clock that dates a boot. It can also delay the cosigning of one
 * log, which changes when its boots were first seen.
 */
function isLater(boot: BootRecord, than: BootRecord): boolean {
  return boot.timeMs >= than.timeMs && boot.datedMs > than.datedMs
}

/** Starts that wrote to more than one log. */
function findMoved(logs: readonly SeenLog[]): ReadonlySet<string> {
  const boots = logs.flatMap(({ entries }) => [
    ...new Set([...entries.values()].flatMap((entry) => (entry.kind === 'boot' ? [entry.bootId] : []))),
  ])
  return new Set(boots.filter((bootId, index) => boots.indexOf(bootId) !== index))
}
