export type TimeLimitOptions = {
  /** What the caller gets when the time is over; by default a `TimeoutError`, as of `AbortSignal.timeout`. */
  createError?: (() => Error) | undefined
  /** Of the caller: when it aborts, the work ends at once with its reason. */
  signal?: AbortSignal | null | undefined
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
  const own = controller.signal
  // Before the work listens to the signal, so that the reason comes out and not what the work makes of it.
  const stopped = new Promise<never>((_resolve, reject) => {
    own.addEventListener('abort', () => reject(own.reason))
  })
  const timer = setTimeout(() => controller.abort(createError()), limitMs)
  // The signals are joined by hand: not every browser has `AbortSignal.any`.
  const forward = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', forward)
  // Makes a promise even of work that throws at once: `stopped` must have its reader before it rejects.
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
