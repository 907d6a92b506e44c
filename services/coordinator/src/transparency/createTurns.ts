/** Runs what it is given one after the other, in the order in which it came. What fails does not keep the next from running. */
export function createTurns() {
  let last: Promise<unknown> = Promise.resolve()
  return <Result>(run: () => Promise<Result>): Promise<Result> => {
    const result = last.then(run)
    last = result.catch(() => undefined)
    return result
  }
}
