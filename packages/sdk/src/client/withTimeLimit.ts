/**
 * Runs a task that ends, one way or the other, within the limit, and at once when the outer signal says so. The task's signal
 * is aborted then; a task that ignores it is left behind. The signals are joined by hand: not every browser has
 * `AbortSignal.any`.
 */
export async function withTimeLimit<R>(
  { limitMs, createError, signal }: { limitMs: number; createError: () => Error; signal?: AbortSignal | undefined },
  task: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const controller = new AbortController()
  let stop = (_reason: unknown) => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = (reason) => {
      reject(reason)
      controller.abort(reason)
    }
  })
  const forward = () => stop(signal?.reason)
  const timer = setTimeout(() => stop(createError()), limitMs)
  signal?.addEventListener('abort', forward)
  try {
    return await Promise.race([task(controller.signal), stopped])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', forward)
  }
}
