import { useEffect, useState } from 'react'
import { fetchAttestation } from './fetchAttestation.ts'

/** Of the evidence behind the service, as it says of itself; null while that is not known. */
export type ServiceMode = 'hardware' | 'mock'

/** Asks the service whether it runs on simulated silicon. */
export function useServiceMode(apiBaseUrl: string): ServiceMode | null {
  const [mode, setMode] = useState<ServiceMode | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    async function ask() {
      try {
        const told = (await fetchAttestation(apiBaseUrl, { signal: controller.signal }))?.mode
        if (!controller.signal.aborted && (told === 'mock' || told === 'hardware')) setMode(told)
      } catch {
        // Not known, then. Another part of the page reports that the service is down.
      }
    }
    void ask()
    return () => controller.abort()
  }, [apiBaseUrl])
  return mode
}
