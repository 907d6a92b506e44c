import type { AppendedEntries } from '@countersign/protocol'
import type { Placing } from './request.ts'

/** A statement's place in the log. */
type LogPlace = { index: number; timeMs: number }

/** What waits for witnesses: its leaf, and its place in the log. */
export type LoggedItem = Placing & { leaf: string; place: LogPlace }

/** The items whose leaves are in the log under their keys, and those that are not: nobody could prove that they are. */
export function findInLog(
  log: AppendedEntries,
  placed: readonly Placing[],
): { logged: LoggedItem[]; missing: (Placing & { leaf: string })[] } {
  const places = readPlaces(log)
  const logged: LoggedItem[] = []
  const missing: (Placing & { leaf: string })[] = []
  for (const item of placed) {
    const leaf = item.batch.leaves[item.leafIndex] ?? ''
    const place = places.get(item.item.keyId + leaf)
    if (place === undefined) missing.push({ ...item, leaf })
    else logged.push({ ...item, leaf, place })
  }
  return { logged, missing }
}

/** Of an entry in hex (`spec/log-v1.md`): the kind of a signature, and where its key id and leaf end and its time begins. */
const SIGNATURE = '01'
const TIME_AT = 98

/** By key id and leaf. What is no entry is not looked at: whoever keeps the log refuses it as a whole. */
function readPlaces({ from, entries }: AppendedEntries): Map<string, LogPlace> {
  const places = new Map<string, LogPlace>()
  for (const [offset, entry] of entries.entries()) {
    if (!entry.startsWith(SIGNATURE)) continue
    const timeMs = Number.parseInt(entry.slice(TIME_AT), 16)
    places.set(entry.slice(SIGNATURE.length, TIME_AT), { index: from + offset, timeMs })
  }
  return places
}

/** When the items of a batch were signed, by their entries: their statements come later, and must say the same. */
export function toTimes(items: readonly LoggedItem[]): { first: number; last: number } {
  const times = items.map(({ place }) => place.timeMs)
  return { first: Math.min(...times), last: Math.max(...times) }
}
