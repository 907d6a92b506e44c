/** The middle value, or the upper of two. */
export function median(values: readonly number[]): number {
  const sorted = toSorted(values)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** The smallest value that at least this share of the values doesn't exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = toSorted(values)
  return sorted[Math.max(Math.ceil(share * sorted.length), 1) - 1] ?? Number.NaN
}

export const interquartileRange = (values: readonly number[]) => percentile(values, 0.75) - percentile(values, 0.25)

/**
 * The probability that a value of the first kind exceeds one of the second, with ties counted half (Mann-Whitney). It is a limit on what a
 * threshold can learn from the values: 0.5 is nothing, 0 and 1 are everything.
 */
export function areaUnderCurve(first: readonly number[], second: readonly number[]): number {
  const all = [
    ...first.map((value) => ({ value, isFirst: true })),
    ...second.map((value) => ({ value, isFirst: false })),
  ].sort((left, right) => left.value - right.value)
  let rankSum = 0
  for (let start = 0; start < all.length; ) {
    let end = start
    while (end < all.length && all[end]?.value === all[start]?.value) end += 1
    const rank = (start + end + 1) / 2
    for (let index = start; index < end; index++) if (all[index]?.isFirst === true) rankSum += rank
    start = end
  }
  return (rankSum - (first.length * (first.length + 1)) / 2) / (first.length * second.length)
}

/** Standard deviation of the area from 0.5 if both kinds have the same distribution. */
export function standardErrorOfArea(first: number, second: number): number {
  return Math.sqrt((first + second + 1) / (12 * first * second))
}

function toSorted(values: readonly number[]): number[] {
  return values.toSorted((left, right) => left - right)
}
