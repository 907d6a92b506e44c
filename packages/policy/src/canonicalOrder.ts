import { toCanonicalJson } from '@countersign/protocol'

/** By canonical bytes: negative where `left` comes first, 0 for the same. */
export function compareCanonical(left: unknown, right: unknown): number {
  const [one, other] = [toCanonicalJson(left), toCanonicalJson(right)]
  const length = Math.min(one.length, other.length)
  for (let index = 0; index < length; index++) {
    const difference = (one[index] as number) - (other[index] as number)
    if (difference !== 0) return difference
  }
  return one.length - other.length
}

/** Whether each item comes after the one before: in order, and none twice. */
export function isAscending(items: readonly unknown[]): boolean {
  return items.every((item, index) => index === 0 || compareCanonical(items[index - 1], item) < 0)
}
