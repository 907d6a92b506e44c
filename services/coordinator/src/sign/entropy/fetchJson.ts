import { isBodyTooLarge, parseJson, readBounded, withinTimeLimit } from '@countersign/protocol'
import { readCauseCode } from '@countersign/service'
import { EntropySourceError } from './entropySource.ts'

/** The fetch of the platform, injected. */
export type Fetch = typeof globalThis.fetch

export type FetchJsonParameters = {
  url: string
  /** For the whole exchange, to the last byte. */
  timeoutMs: number
  headers?: Record<string, string>
  /** Sent as JSON, by POST. */
  body?: object
}

const MAX_ANSWER_BYTES = 1_048_576
/** How a connection ends that the source closed: a kept one perhaps at the very moment of the request. */
const CLOSED = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']

/**
 * Asks an entropy source: JSON only, 1 MiB at most, within a time limit, and no redirects, which would have another host
 * answer than the one that was configured.
 */
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
    // Once more, on another connection: otherwise all who wait for samples would fail for it. What is posted may have been done.
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
      // Without the cause: its text can hold the URL, and so whatever an operator put there.
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
