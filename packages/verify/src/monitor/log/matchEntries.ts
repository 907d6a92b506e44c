import type { StatementEntry } from '@countersign/log'
import type { Finding } from '../findings.ts'
import type { ReceiptFacts } from '../judgeReceipt.ts'
import { listEntries } from './logMemory.ts'
import type { SeenLog } from './readLog.ts'

export type MatchParameters = StoriesParameters & {
  /** All that could be read of the wallet, by the leaves of their statements. */
  receipts: ReadonlyMap<string, ReceiptFacts>
  /** Receipts of the wallet that could not be read: each may be of one entry. */
  unread: number
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

/** Holds the entries of a wallet's key against its receipts. */
export function matchEntries(parameters: MatchParameters): Matched {
  const { logs, receipts, mined, unread, isWhole } = parameters
  const { stories, lies } = readStories(parameters)
  const findings: Finding[] = [...lies]
  const counts = new Map(logs.map(({ origin }) => [origin, { entries: 0, proven: 0, dropped: 0 }]))
  const open: Finding[] = []
  // Of several starts that made one statement, one may have given it out, and the others erased it.
  const givenOut = new Set(stories.filter((story) => !isErased(story)).map(({ leaf }) => leaf))
  for (const story of stories) {
    const { origin, index, leaf } = story
    const count = counts.get(origin) as LogCounts
    const receipt = receipts.get(leaf)
    const place = { origin, index, leaf }
    count.entries += 1
    // An enclave start in an unread log may have released the signature, unless the receipt names the start that erased it.
    const isOfStart = receipt?.log?.bootId === story.bootId
    if (receipt !== undefined && isErased(story) && (isOfStart || (isWhole && !givenOut.has(leaf)))) {
      const { txHash } = receipt
      const what = mined.has(txHash) ? 'is mined' : 'has a receipt'
      findings.push({ kind: 'log-lies', ...place, txHash, detail: `it says that this was erased, and it ${what}` })
    } else if (isErased(story)) count.dropped += 1
    else if (receipt !== undefined) count.proven += 1
    else {
      const finding: Finding = { ...place, ...judgeStory(story, parameters) }
      if (finding.kind === 'hidden') open.push(finding)
      else findings.push(finding)
    }
  }
  // A receipt that could not be read may be that of an entry; more entries than such receipts cannot all have one.
  const isClear = open.length > unread
  for (const finding of open) findings.push(isClear ? finding : { ...finding, kind: 'entry-unmatched' })
  return { findings, counts }
}

/** That it was erased says that its start never gave it away, under any of its entries: `log-v1.md` §1. */
function isErased({ dropped, unacknowledged }: Story): boolean {
  return dropped > 0 && unacknowledged === 0
}

/** What is to be said of a signature that no receipt is of. */
function judgeStory(
  { timeMs, unacknowledged, isOver }: Story,
  { isDue }: Pick<MatchParameters, 'isDue'>,
): Pick<Finding, 'kind' | 'detail'> {
  if (!isDue(timeMs)) return { kind: 'entry-awaited' }
  if (unacknowledged > 0) {
    return { kind: 'unresolved', detail: 'it was given out, and nobody confirmed that its receipt is kept' }
  }
  if (isOver) return { kind: 'unresolved', detail: 'the enclave that signed it stopped' }
  return { kind: 'hidden' }
}

/** What logs say of one statement of one start of an enclave, `log-v1.md` §1. */
type Story = {
  leaf: string
  bootId: string
  /** Of its first entry. */
  origin: string
  index: number
  /** That of the entry, or when it was first seen, if that was earlier. */
  timeMs: number
  /** How many entries record its signing: more than one if a call was repeated. An unread log may have any number. */
  signed: number
  dropped: number
  unacknowledged: number
  /** Its start is over, as far as can be seen. */
  isOver: boolean
}

type StoriesParameters = {
  logs: readonly (SeenLog & { isStale: boolean })[]
  /** Whether these are all logs with entries. */
  isWhole: boolean
  keyIds: ReadonlySet<string>
}

type Placed = Pick<Story, 'origin' | 'index' | 'timeMs'> & { bootId: string; entry: StatementEntry }

/** Reads what became of each statement of these keys. A start that leaves a log for another one goes on with its stories there. */
function readStories({ logs, keyIds, isWhole }: StoriesParameters): {
  stories: readonly Story[]
  lies: readonly Finding[]
} {
  const stories = new Map<string, Story>()
  /** Indexes of signatures, by origin, start and leaf. */
  const newest = new Map<string, number>()
  /** Stories with signatures in more than one log. */
  const spread = new Set<Story>()
  const lies: Finding[] = []
  const lie = (origin: string, index: number, detail: string) => lies.push({ kind: 'log-lies', origin, index, detail })
  const over = findOver(logs)
  const moved = findMoved(logs)
  const placed = logs.flatMap((log) => {
    if (log.size > 0 && log.entries.get(0)?.kind !== 'boot') {
      lie(log.origin, 0, 'it does not begin with the start of an enclave')
    }
    return placeEntries(log, keyIds)
  })
  for (const { origin, index, timeMs, bootId, entry } of placed.filter(isSignature)) {
    const { leaf } = entry
    newest.set(`${origin} ${bootId} ${leaf}`, index)
    const story = stories.get(`${bootId} ${leaf}`)
    if (story !== undefined) {
      story.signed += 1
      if (story.origin !== origin) spread.add(story)
    } else {
      const isOver = over.has(bootId)
      const counts = { signed: 1, dropped: 0, unacknowledged: 0 }
      stories.set(`${bootId} ${leaf}`, { leaf, bootId, origin, index, timeMs, isOver, ...counts })
    }
  }
  for (const { origin, index, timeMs, bootId, entry } of placed.filter((one) => !isSignature(one))) {
    const { leaf } = entry
    const story = stories.get(`${bootId} ${leaf}`)
    if (story === undefined && (moved.has(bootId) || !isWhole)) {
      // The signature is in a log that was abandoned before witnesses saw it, or that was not read.
      const signed = isWhole ? 1 : Number.POSITIVE_INFINITY
      const counts = { signed, dropped: 0, unacknowledged: 0, [entry.kind]: 1 }
      stories.set(`${bootId} ${leaf}`, { leaf, bootId, origin, index, timeMs, isOver: over.has(bootId), ...counts })
      continue
    }
    const isLeft = story !== undefined && story.dropped + story.unacknowledged < story.signed
    if (!isLeft) {
      lie(origin, index, 'it reports the fate of a signature that it does not have')
      continue
    }
    if (entry.kind === 'unacknowledged') {
      story.unacknowledged += 1
      continue
    }
    story.dropped += 1
    const again = newest.get(`${origin} ${bootId} ${leaf}`) ?? index
    if (again > index) lie(origin, again, 'it has what was erased before')
    // A start that leaves a log erases first what it has not given away: what it signs again in the next was given away.
    if (spread.has(story)) lie(origin, index, 'it says that this was erased, and its start signed it in two logs')
  }
  return { stories: [...stories.values()], lies }
}

function isSignature({ entry }: Placed): boolean {
  return entry.kind === 'signature'
}

/** The entries of these keys, each with the start that wrote it. */
function placeEntries(log: SeenLog, keyIds: ReadonlySet<string>): Placed[] {
  const { origin } = log
  let bootId = ''
  return listEntries(log).flatMap(({ index, entry, timeMs }) => {
    if (entry.kind === 'boot') bootId = entry.bootId
    return entry.kind !== 'boot' && keyIds.has(entry.keyId) ? [{ origin, index, timeMs, bootId, entry }] : []
  })
}

type PlacedBoot = { bootId: string; timeMs: number; datedMs: number; isOver: boolean }

/** Starts after which another one wrote to the log that they wrote to last, or whose log is stale. */
function findOver(logs: StoriesParameters['logs']): ReadonlySet<string> {
  const boots = logs.flatMap(placeBoots)
  const isLast = (boot: PlacedBoot) => !boots.some((other) => other.bootId === boot.bootId && isLater(other, boot))
  const live = new Set(boots.filter((boot) => !boot.isOver && isLast(boot)).map(({ bootId }) => bootId))
  return new Set(boots.map(({ bootId }) => bootId).filter((bootId) => !live.has(bootId)))
}

function placeBoots(log: StoriesParameters['logs'][number]): PlacedBoot[] {
  const boots = listEntries(log).flatMap(({ entry, timeMs }) =>
    entry.kind === 'boot' ? [{ bootId: entry.bootId, timeMs, datedMs: entry.timeMs }] : [],
  )
  return boots.map((boot, at) => {
    const isOver = log.isStale || boots.slice(at).some((later) => later.bootId !== boot.bootId)
    return { ...boot, isOver }
  })
}

/**
 * Only where both times say so. The host sets the clock that dates a boot, and can have one log cosigned anew before a look and another
 * not, which moves when each was first seen.
 */
function isLater(boot: PlacedBoot, than: PlacedBoot): boolean {
  return boot.timeMs >= than.timeMs && boot.datedMs > than.datedMs
}

/** Starts that wrote to more than one log. */
function findMoved(logs: readonly SeenLog[]): ReadonlySet<string> {
  const boots = logs.flatMap(({ entries }) => [
    ...new Set([...entries.values()].flatMap((entry) => (entry.kind === 'boot' ? [entry.bootId] : []))),
  ])
  return new Set(boots.filter((bootId, index) => boots.indexOf(bootId) !== index))
}
