import { toCanonicalJson } from '@countersign/protocol/core'

/** Compares canonical bytes: negative if `left` comes first, 0 if they are equal. */
export function compareCanonical(left: unknown, right: unknown): number {
  return compareBytes(toCanonicalJson(left), toCanonicalJson(right))
}

/** Sorts the items. */
export function sortCanonical(items: readonly unknown[]): unknown[] {
  if (items.length < 2) return [...items]
  const encoded = items.map((item) => ({ item, bytes: toCanonicalJson(item) }))
  return encoded.sort((left, right) => compareBytes(left.bytes, right.bytes)).map(({ item }) => item)
}

/** Whether the items are in ascending order without duplicates. */
export function isAscending(items: readonly unknown[]): boolean {
  // Skips the encoding if there is nothing to compare.
  if (items.length < 2) return true
  const encoded = items.map(toCanonicalJson)
  return encoded.every((item, index) => index === 0 || compareBytes(encoded[index - 1] as Uint8Array, item) < 0)
}

function compareBytes(left: Uint8Array, right: Uint8Array): number {
  const length = Math.min(left.length, right.length)
  for (let index = 0; index < length; index++) {
    const difference = (left[index] as number) - (right[index] as number)
    if (difference !== 0) return difference
  }
  return left.length - right.length
}
