/** The middle one; of an even number, the upper of the two. */
export function median(values: readonly number[]): number {
  const sorted = toSorted(values)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** The smallest value that at least this share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = toSorted(values)
  return sorted[Math.max(Math.ceil(share * sorted.length), 1) - 1] ?? Number.NaN
}

function toSorted(values: readonly number[]): number[] {
  return values.toSorted((left, right) => left - right)
}
