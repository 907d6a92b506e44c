import type { AppendedEntries } from '@countersign/protocol'

/**
 * Two answers of one enclave as one, where the second begins in the first or right behind it. Undefined where it does not, or where they
 * differ in what both have: then each is judged by itself.
 *
 * Only the checkpoint of the longer one is kept. The other, with its signature, is never read: nothing is taken from it, since the tree
 * that the kept one signs has its entries too.
 */
export function mergeAppended(first: AppendedEntries, second: AppendedEntries): AppendedEntries | undefined {
  const [end, secondEnd] = [first.from + first.entries.length, second.from + second.entries.length]
  const offset = second.from - first.from
  if (first.origin !== second.origin || offset < 0 || second.from > end) return undefined
  const isSame = second.entries.every((entry, index) => entry === (first.entries[offset + index] ?? entry))
  if (!isSame || (secondEnd === end && second.checkpoint !== first.checkpoint)) return undefined
  if (secondEnd <= end) return first
  const entries = [...first.entries, ...second.entries.slice(end - second.from)]
  return { ...first, entries, checkpoint: second.checkpoint }
}
