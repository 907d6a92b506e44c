import { isBodyTooLarge, readBounded, withinTimeLimit } from '@countersign/protocol'
import { VerifierError } from './errors.ts'

/** Fetches a bounded response from an untrusted server. Rejects with a `VerifierError`. */
export type FetchBytes = (parameters: FetchBytesParameters) => Promise<Uint8Array<ArrayBuffer>>

export type FetchBytesParameters = {
  url: string
  maxBytes: number
  accept: string
  /** Sends a POST with this JSON text; otherwise a GET. */
  body?: string
}

export type FetchDeps = { fetch: typeof globalThis.fetch; timeoutMs: number }

/**
 * Fetches without credentials, with a time limit and a size limit. Errors name only the host, because the path of a node's URL is often a
 * secret.
 *
 * Doesn't follow redirects, so that only servers that the reader or the proof named are contacted. A page can't see where a redirect leads,
 * so it couldn't apply any rule that allows some of them. See docs/decisions/0012.
 */
export function createFetchBytes(deps: FetchDeps): FetchBytes {
  return async (parameters) => {
    const { host } = new URL(parameters.url)
    try {
      return await withinTimeLimit(deps.timeoutMs, async (signal) => {
        const response = await request(deps, parameters, signal)
        const fault = findFault(response)
        if (fault !== undefined) {
          await response.body?.cancel()
          throw failed(host, fault, { status: response.status })
        }
        return await readBounded(response.body, parameters.maxBytes)
      })
    } catch (error) {
      if (error instanceof VerifierError) throw error
      const what = isBodyTooLarge(error) ? `sent more than ${parameters.maxBytes} bytes` : describe(error, deps)
      throw failed(host, what, { cause: error })
    }
  }
}

function request(
  { fetch }: FetchDeps,
  { url, accept, body }: FetchBytesParameters,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept,
      // Decompression could exceed the size limit. Browsers choose the encoding themselves.
      'accept-encoding': 'identity',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    // Only for the page's own host, which may need a password.
    credentials: 'same-origin',
    referrerPolicy: 'no-referrer',
    signal,
  })
}

function findFault(response: Response): string | undefined {
  const { status, type } = response
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) return 'redirects; redirects are not followed'
  if (status !== 200) return `returned ${status}`
  const isPage = /^text\/html\b/i.test(response.headers.get('content-type') ?? '')
  return isPage ? 'returned a web page instead of data' : undefined
}

function describe(error: unknown, { timeoutMs }: FetchDeps): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `did not finish within ${timeoutMs / 1000} s`
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  if (code === 'UND_ERR_SOCKET' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'closed the connection early'
  // Browsers don't distinguish these cases.
  if (code === undefined) return 'could not be reached, closed the connection, or doesn’t allow this page (CORS)'
  return `could not be reached (${code})`
}

function failed(host: string, what: string, options: { status?: number; cause?: unknown } = {}) {
  return new VerifierError('fetch_failed', 'could not fetch', { details: `${host} ${what}`, ...options })
}
