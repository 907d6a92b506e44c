export type TimeLimitOptions = {
  /** What the caller gets when the time is over; by default a `TimeoutError`, as of `AbortSignal.timeout`. */
  createError?: (() => Error) | undefined
  /** Of the caller: when it aborts, the work ends at once with its reason. */
  signal?: AbortSignal | undefined
}

/**
 * Settles within `limitMs`, even if the work ignores its signal: then the work is left behind and whatever it gives later is
 * dropped. The work's signal is aborted when the time is over, when the caller aborts, and when the work fails, so that no
 * connection of it stays open.
 *
 * @example
 * const response = await withinTimeLimit(10_000, (signal) => fetch(url, { signal }))
 */
export async function withinTimeLimit<Result>(
  limitMs: number,
  work: (signal: AbortSignal) => Promise<Result>,
  { createError = timedOut, signal }: TimeLimitOptions = {},
): Promise<Result> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  let stop = (_reason: unknown) => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = (reason) => {
      reject(reason)
      controller.abort(reason)
    }
  })
  // The signals are joined by hand: not every browser has `AbortSignal.any`.
  const forward = () => stop(signal?.reason)
  const timer = setTimeout(() => stop(createError()), limitMs)
  signal?.addEventListener('abort', forward)
  try {
    return await Promise.race([work(controller.signal), stopped])
  } catch (error) {
    controller.abort(error)
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', forward)
  }
}

function timedOut() {
  return new DOMException('The time is over', 'TimeoutError')
}
