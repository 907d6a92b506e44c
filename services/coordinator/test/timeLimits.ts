import { onTestFinished, vi } from 'vitest'

/** Limits of `AbortSignal.timeout` that are over when a test says so, and never because a machine is busy. */
export function holdTimeLimits(): { end(): void } {
  const limits: AbortController[] = []
  const held = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    const limit = new AbortController()
    limits.push(limit)
    return limit.signal
  })
  onTestFinished(() => void held.mockRestore())
  return {
    end() {
      for (const limit of limits.splice(0)) limit.abort(new DOMException('timed out', 'TimeoutError'))
    },
  }
}
