import { createTx, toDigest } from '@countersign/testing/stack'
import type { Page } from 'playwright'

/**
 * Calls the service from a page without the SDK, with the user's cookie: reads the wallet, has a transaction signed, and the
 * same as a form would, which browsers send without asking the service first. Gives what the page learns of each: a status,
 * or `refused`.
 */
export function forgeCalls(page: Page, apiBaseUrl: string): Promise<(number | 'refused')[]> {
  const txMetadata = createTx(1_000)
  const body = JSON.stringify({ digest: toDigest(txMetadata), txMetadata })
  return page.evaluate(
    async (parameters) => {
      const json = { 'content-type': 'application/json' }
      const attempts: [string, RequestInit][] = [
        ['/wallet/me', {}],
        ['/sign/digest', { method: 'POST', body: parameters.body, headers: json }],
        ['/sign/digest', { method: 'POST', body: parameters.body, mode: 'no-cors' }],
      ]
      const outcomes = attempts.map(async ([path, init]) => {
        const url = `${parameters.apiBaseUrl}${path}`
        const response = await fetch(url, { credentials: 'include', ...init }).catch(() => undefined)
        return response?.status ?? ('refused' as const)
      })
      return Promise.all(outcomes)
    },
    { apiBaseUrl, body },
  )
}
