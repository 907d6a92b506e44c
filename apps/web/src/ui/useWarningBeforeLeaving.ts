import { useEffect } from 'react'

/** A page that is closed between signature and broadcast leaves a public signature behind, and nothing sent. */
export function useWarningBeforeLeaving(isSigning: boolean): void {
  useEffect(() => {
    if (!isSigning) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [isSigning])
}
