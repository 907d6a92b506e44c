import { isPlainObject } from '@countersign/protocol'
import { useEffect, useState } from 'react'

/** A way to sign in, as the service lists it. */
export type Provider = {
  id: string
  name: string
  /** For an `<img>`; null where it is none that we show. */
  icon: string | null
}

const MAX_PROVIDERS = 20

/** Asks the service how one can sign in. Null while that is not known; empty where it does not say. */
export function useProviders(apiBaseUrl: string): readonly Provider[] | null {
  const [providers, setProviders] = useState<readonly Provider[] | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    async function ask() {
      let found: readonly Provider[] = []
      try {
        const url = `${apiBaseUrl.replace(/\/+$/, '')}/auth`
        const response = await globalThis.fetch(url, { signal: controller.signal })
        if (response.ok) found = parseProviders(await response.json())
      } catch {
        // There is one button then, for the provider that every service has.
      }
      if (!controller.signal.aborted) setProviders(found)
    }
    void ask()
    return () => controller.abort()
  }, [apiBaseUrl])
  return providers
}

/** What can be used of an answer. Pictures come with it or not at all: nothing is loaded from elsewhere. */
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
