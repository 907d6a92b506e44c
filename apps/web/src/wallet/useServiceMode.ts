import { useEffect, useState } from 'react'

/** Of the evidence behind the service, as it says of itself; null while that is not known. */
export type ServiceMode = 'hardware' | 'mock'

/** Asks the service whether it runs on simulated silicon. Whether that is true, only a proof tells. */
export function useServiceMode(apiBaseUrl: string): ServiceMode | null {
  const [mode, setMode] = useState<ServiceMode | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    async function ask() {
      try {
        const url = `${apiBaseUrl.replace(/\/+$/, '')}/health/attestation`
        const response = await globalThis.fetch(url, { signal: controller.signal })
        const body: unknown = response.ok ? await response.json() : null
        const told = typeof body === 'object' && body !== null && 'mode' in body ? body.mode : null
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
