/**
 * Runs a task that ends, one way or the other, within the limit. The task's signal is aborted then; a task that ignores it is
 * left behind.
 */
export async function withTimeLimit<R>(
  { limitMs, createError }: { limitMs: number; createError: () => Error },
  task: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(createError())
      controller.abort()
    }, limitMs)
  })
  try {
    return await Promise.race([task(controller.signal), limit])
  } finally {
    clearTimeout(timer)
  }
}
