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

/** What the service answers at a path; undefined where it has no answer. Rejects if it is down. */
export async function askService(apiBaseUrl: string, path: string, init: RequestInit): Promise<unknown> {
  const response = await globalThis.fetch(`${apiBaseUrl.replace(/\/+$/, '')}${path}`, init)
  return response.ok ? response.json() : undefined
}

/** What `parse` makes of that answer, or of undefined where there is none. Null while it is not known. `parse` must not change. */
export function useServiceAnswer<R>(apiBaseUrl: string, path: string, parse: (body: unknown) => R): R | null {
  const [answer, setAnswer] = useState<R | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    askService(apiBaseUrl, path, { signal })
      // Another part of the page reports that the service is down.
      .catch(() => undefined)
      .then((body) => {
        if (!signal.aborted) setAnswer(parse(body))
      })
    return () => controller.abort()
  }, [apiBaseUrl, path, parse])
  return answer
}

/** What can be used of the list of ways to sign in. Pictures come with it or not at all: nothing is loaded from elsewhere. */
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
