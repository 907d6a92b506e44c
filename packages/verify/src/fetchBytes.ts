import { isBodyTooLarge, readBounded, withinTimeLimit } from '@countersign/protocol'
import { VerifierError } from './errors.ts'

/** A few bytes from a server that nobody trusts. Rejects with a `VerifierError`. */
export type FetchBytes = (parameters: FetchBytesParameters) => Promise<Uint8Array<ArrayBuffer>>

export type FetchBytesParameters = {
  url: string
  maxBytes: number
  accept: string
  /** Sends a POST with this JSON text; otherwise a GET. */
  body?: string
}

/** How the network is reached. */
export type FetchDeps = { fetch: typeof globalThis.fetch; timeoutMs: number }

/**
 * Without credentials, within one time limit, and reading stops at the bound. Errors name the host alone, since the path of a
 * node's URL is often a secret.
 *
 * No redirect is followed, in Node or in a browser: only servers that the reader or the proof named are contacted. A page
 * cannot see where a redirect leads (its answer is opaque), so any rule that allows some of them would be one that only the
 * command line can keep. See docs/decisions/0012.
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
      const what = isBodyTooLarge(error) ? `sends more than ${parameters.maxBytes} bytes` : describe(error, deps)
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
      // Compressed bytes would have to be unpacked before their bound is known. Browsers choose the encoding themselves.
      'accept-encoding': 'identity',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    // To nobody but the page's own host, which a password may guard.
    credentials: 'same-origin',
    referrerPolicy: 'no-referrer',
    signal,
  })
}

function findFault(response: Response): string | undefined {
  const { status, type } = response
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) return 'redirects, which is not followed'
  if (status !== 200) return `answers ${status}`
  const isPage = /^text\/html\b/i.test(response.headers.get('content-type') ?? '')
  return isPage ? 'answers with a web page instead of data' : undefined
}

function describe(error: unknown, { timeoutMs }: FetchDeps): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `did not finish within ${timeoutMs / 1000} s`
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  if (code === 'UND_ERR_SOCKET' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'closed the connection early'
  // A browser does not say which of these it was.
  if (code === undefined) return 'could not be reached, broke off, or does not let this page ask (CORS)'
  return `could not be reached (${code})`
}

function failed(host: string, what: string, options: { status?: number; cause?: unknown } = {}) {
  return new VerifierError('fetch_failed', 'could not fetch', { details: `${host} ${what}`, ...options })
}
