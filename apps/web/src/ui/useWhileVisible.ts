import { useCallback, useEffect, useState } from 'react'

/**
 * Calls `run` at once and then after each interval while the page is visible. Aborts it when the page is hidden or left. `run` must handle
 * its own failures. Returns a function that runs it now.
 */
export function useWhileVisible(run: (signal: AbortSignal) => Promise<void>, intervalMs: number): () => void {
  const [turn, setTurn] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn begins at once
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let controller = new AbortController()
    async function go({ signal }: AbortController) {
      if (document.visibilityState !== 'visible') return
      await run(signal).catch(() => {})
      if (!signal.aborted) timer = setTimeout(go, intervalMs, controller)
    }
    function pause() {
      controller.abort()
      clearTimeout(timer)
    }
    function onVisibility() {
      pause()
      controller = new AbortController()
      void go(controller)
    }
    document.addEventListener('visibilitychange', onVisibility)
    void go(controller)
    return () => {
      document.removeEventListener('visibilitychange', onVisibility)
      pause()
    }
  }, [run, intervalMs, turn])
  return useCallback(() => setTurn((before) => before + 1), [])
}
