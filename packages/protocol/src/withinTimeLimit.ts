export type TimeLimitOptions = {
  /** The error at the time limit. Default: a `TimeoutError`, as from `AbortSignal.timeout`. */
  createError?: (() => Error) | undefined
  /** The caller's signal. When it aborts, the call rejects at once with its reason. */
  signal?: AbortSignal | null | undefined
}

/**
 * Settles within `limitMs`, even if the work ignores its signal. The work's later result is dropped then. The work's signal is aborted at
 * the time limit, when the caller aborts, and when the work fails, so that no connection stays open.
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
  const own = controller.signal
  // Registered before the work's own listener, so that the caller gets the reason and not the work's error.
  const stopped = new Promise<never>((_resolve, reject) => {
    own.addEventListener('abort', () => reject(own.reason))
  })
  const timer = setTimeout(() => controller.abort(createError()), limitMs)
  // Joined by hand, because not every browser has `AbortSignal.any`.
  const forward = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', forward)
  // Turns a synchronous throw into a rejection: `stopped` needs a handler before it rejects.
  const run = async () => work(own)
  try {
    return await Promise.race([run(), stopped])
  } catch (error) {
    controller.abort(error)
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', forward)
  }
}

const timedOut = () => new DOMException('timed out', 'TimeoutError')
