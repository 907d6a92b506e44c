import { isPlainObject } from '@countersign/protocol'
import { useEffect, useState } from 'react'

/** A sign-in provider. */
export type Provider = {
  id: string
  name: string
  /** A data URL for an `<img>`, or null. */
  icon: string | null
}

const MAX_PROVIDERS = 20

/** Fetches JSON from the service. Returns undefined for an error status and rejects on a network error. */
async function fetchFromService(apiBaseUrl: string, path: string, init: RequestInit): Promise<unknown> {
  const response = await globalThis.fetch(`${apiBaseUrl.replace(/\/+$/, '')}${path}`, init)
  return response.ok ? response.json() : undefined
}

/**
 * Returns `parse` of the response, with undefined for a failed request. Null while loading, and without a URL. `parse` must be stable.
 */
export function useServiceResponse<R>(apiBaseUrl: string | null, path: string, parse: (body: unknown) => R): R | null {
  const [answer, setAnswer] = useState<R | null>(null)
  useEffect(() => {
    if (apiBaseUrl === null) return
    const controller = new AbortController()
    const { signal } = controller
    const credentials = path === '/auth/session' ? 'include' : 'same-origin'
    fetchFromService(apiBaseUrl, path, { signal, credentials })
      // Another part of the page reports the outage.
      .catch(() => undefined)
      .then((body) => {
        if (!signal.aborted) setAnswer(parse(body))
      })
    return () => controller.abort()
  }, [apiBaseUrl, path, parse])
  return answer
}

/** Parses the list of providers. Accepts only embedded icons, so that nothing is loaded from other servers. */
export function parseProviders(body: unknown): Provider[] {
  if (!isPlainObject(body) || !Array.isArray(body.providers)) return []
  return body.providers.slice(0, MAX_PROVIDERS).flatMap((value: unknown): Provider[] => {
    if (!isPlainObject(value)) return []
    const { id, name, icon } = value
    if (typeof id !== 'string' || typeof name !== 'string' || id === '' || name === '') return []
    const isPicture = typeof icon === 'string' && /^data:image\/svg\+xml;base64,[A-Za-z0-9+/=]+$/.test(icon)
    return [{ id, name, icon: isPicture ? icon : null }]
  })
}
