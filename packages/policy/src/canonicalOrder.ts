import { toCanonicalJson } from '@countersign/protocol/core'

/** By canonical bytes: negative where `left` comes first, 0 for the same. */
export function compareCanonical(left: unknown, right: unknown): number {
  return compareBytes(toCanonicalJson(left), toCanonicalJson(right))
}

/** The items in ascending order. */
export function sortCanonical(items: readonly unknown[]): unknown[] {
  if (items.length < 2) return [...items]
  const encoded = items.map((item) => ({ item, bytes: toCanonicalJson(item) }))
  return encoded.sort((left, right) => compareBytes(left.bytes, right.bytes)).map(({ item }) => item)
}

/** Whether each item comes after the one before: in order, and none twice. */
export function isAscending(items: readonly unknown[]): boolean {
  // Nothing to compare, nothing to encode.
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
