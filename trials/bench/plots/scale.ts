/** Places values of one axis. */
export type Scale = { ticks: number[]; place(value: number): number }

/** From 0 to a round number above the largest value, placed between `from` and `to`. */
export function toLinear(values: readonly number[], [from, to]: readonly [number, number], count = 5): Scale {
  const largest = Math.max(...values) || 1
  const step = toRound(largest / count)
  const steps = Math.ceil(largest / step)
  return {
    // Multiplied, not added: 0.1 + 0.2 would show.
    ticks: Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12))),
    place: (value) => from + ((to - from) * value) / (steps * step),
  }
}

/** Equal factors are equal distances; the ticks are the values themselves. */
export function toLogarithmic(values: readonly number[], [from, to]: readonly [number, number]): Scale {
  const ticks = [...new Set(values)].toSorted((left, right) => left - right)
  const low = Math.log(ticks[0] ?? 1)
  const range = Math.log(ticks.at(-1) ?? 1) - low
  return {
    ticks,
    place: (value) => (range === 0 ? (from + to) / 2 : from + ((to - from) * (Math.log(value) - low)) / range),
  }
}

/** The next of 1, 2, 5, 10 … times a power of ten. */
function toRound(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= value * 0.999_999) ?? 10
  return factor * power
}
