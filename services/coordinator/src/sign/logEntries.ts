import { decodeLogEntry, LogError } from '@countersign/log'
import { type AppendedEntries, fromHex } from '@countersign/protocol'
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
    const place = places.get(`${item.item.keyId} ${leaf}`)
    if (place === undefined) missing.push({ ...item, leaf })
    else logged.push({ ...item, leaf, place })
  }
  return { logged, missing }
}

/** By key id and leaf. */
function readPlaces({ from, entries }: AppendedEntries): Map<string, LogPlace> {
  const places = new Map<string, LogPlace>()
  for (const [offset, text] of entries.entries()) {
    const entry = decode(text)
    if (entry?.kind !== 'signature') continue
    places.set(`${entry.keyId} ${entry.leaf}`, { index: from + offset, timeMs: entry.timeMs })
  }
  return places
}

/** Undefined for what is no entry: whoever keeps the log refuses it as a whole. */
function decode(entry: string) {
  try {
    return decodeLogEntry(fromHex(entry))
  } catch (error) {
    if (error instanceof LogError) return undefined
    throw error
  }
}

/** When the items of a batch were signed, by their entries: their statements come later, and must say the same. */
export function toTimes(items: readonly LoggedItem[]): { first: number; last: number } {
  const times = items.map(({ place }) => place.timeMs)
  return { first: Math.min(...times), last: Math.max(...times) }
}
