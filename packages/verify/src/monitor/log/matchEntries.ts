import type { Finding } from '../report.ts'
import { readStories, type StoriesParameters, type Story } from './readStories.ts'
import type { ReceiptFacts } from './receiptFacts.ts'

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
