import { onTestFinished, vi } from 'vitest'

/** `AbortSignal.timeout` limits that end when the test says so, independent of the machine's speed. */
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
