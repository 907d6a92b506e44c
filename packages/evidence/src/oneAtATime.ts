/**
 * Returns a function that runs tasks one after the other, in the order of the calls. A task that fails fails its own
 * caller and nobody else.
 *
 * @example
 * const oneAtATime = createOneAtATime()
 * const [first, second] = await Promise.all([oneAtATime(readQuote), oneAtATime(readQuote)])
 */
export function createOneAtATime(): <Result>(task: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task)
    last = result.catch(() => undefined)
    return result
  }
}
