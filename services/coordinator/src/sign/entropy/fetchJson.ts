import { isBodyTooLarge, parseJson, readBounded, withinTimeLimit } from '@countersign/protocol'
import { readCauseCode } from '@countersign/service'
import { EntropySourceError } from './entropySource.ts'

/** The platform's fetch, injected. */
export type Fetch = typeof globalThis.fetch

export type FetchJsonParameters = {
  url: string
  /** The limit for the whole exchange, up to the last byte. */
  timeoutMs: number
  headers?: Record<string, string>
  /** Sent as JSON by POST. */
  body?: object
}

const MAX_ANSWER_BYTES = 1_048_576
/** Errors of a connection that the source closed, perhaps a kept one just as the request began. */
const CLOSED = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']

/** Fetches JSON from an entropy source: at most 1 MiB, within a time limit, and without redirects, which could lead to another host. */
export async function fetchJson(
  { fetch }: { fetch: Fetch },
  { url, timeoutMs, headers, body }: FetchJsonParameters,
): Promise<unknown> {
  const init = body
    ? {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
      }
    : { headers: { accept: 'application/json', ...headers } }
  const exchange = async (signal: AbortSignal) => {
    const ask = () => fetch(url, { ...init, redirect: 'error', signal })
    // Retry once on another connection, so that a closed one doesn't fail all callers. A POST is not retried, because it may have been
    // processed.
    const askAgain = (error: unknown) => {
      if (body === undefined && CLOSED.includes(toErrno(error))) return ask()
      throw error
    }
    try {
      const response = await ask().catch(askAgain)
      if (response.status === 401) throw new EntropySourceError('unauthorized')
      if (response.status !== 200) throw new EntropySourceError('status', { details: String(response.status) })
      if (!isJson(response.headers.get('content-type'))) throw new EntropySourceError('content_type')
      return await readBounded(response.body, MAX_ANSWER_BYTES)
    } catch (error) {
      if (error instanceof EntropySourceError) throw error
      if (isBodyTooLarge(error)) throw new EntropySourceError('size')
      // Omit the cause: its text can contain the URL and with it an operator's credentials.
      throw new EntropySourceError('unreachable', { details: toErrno(error) })
    }
  }
  const bytes = await withinTimeLimit(timeoutMs, exchange, { createError: () => new EntropySourceError('timeout') })
  try {
    return parseJson(bytes)
  } catch {
    throw new EntropySourceError('malformed', { details: 'not JSON' })
  }
}

function toErrno(error: unknown): string {
  return readCauseCode(error) ?? 'unknown'
}

function isJson(contentType: string | null): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}
