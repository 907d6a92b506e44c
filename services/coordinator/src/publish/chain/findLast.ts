/**
 * The last number up to `newest` that passes, or 0: all up to some number do, and none after it. In growing steps back from the
 * newest, then between the last two, because many nodes have dropped the old blocks that a search over the whole chain asks for first.
 */
export async function findLast(newest: number, passes: (number: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [newest, newest]
  for (let step = 1; low > 0 && !(await passes(low)); step *= 2) {
    high = low - 1
    low = Math.max(0, low - step)
  }
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (await passes(middle)) low = middle
    else high = middle - 1
  }
  return low
}
