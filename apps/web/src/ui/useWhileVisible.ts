import { useCallback, useEffect, useState } from 'react'

/**
 * Runs something at once, and again after each interval, as long as the page can be seen. `run` reports its own failures; when the
 * page is hidden or left it is aborted. The answer runs it now.
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
