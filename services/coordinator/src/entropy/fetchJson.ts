import { EntropySourceError } from './entropySourceError.ts'

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

const MAX_ANSWER_LENGTH = 1_048_576

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
  const text = await withinTimeLimit(timeoutMs, async (signal) => {
    try {
      const response = await fetch(url, { ...init, redirect: 'error', signal })
      if (response.status === 401) throw new EntropySourceError('unauthorized')
      if (response.status !== 200) throw new EntropySourceError('status', { details: String(response.status) })
      if (!isJson(response.headers.get('content-type'))) throw new EntropySourceError('content_type')
      return await readText(response)
    } catch (error) {
      if (error instanceof EntropySourceError) throw error
      // Without the cause: its text can hold the URL, and so whatever an operator put there.
      throw new EntropySourceError('unreachable', { details: toErrno(error) })
    }
  })
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own error quotes the text.
    throw new EntropySourceError('malformed', { details: 'not JSON' })
  }
}

function toErrno(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
}

function isJson(contentType: string | null): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

/** Counted as it comes, after decompression; leaving the loop by an error closes the connection. */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > MAX_ANSWER_LENGTH) throw new EntropySourceError('size')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Answers after `timeoutMs` at the latest, even if the task ignores its signal, and leaves no connection behind. */
async function withinTimeLimit<Result>(
  timeoutMs: number,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new EntropySourceError('timeout')), timeoutMs)
  })
  try {
    return await Promise.race([task(controller.signal), expired])
  } finally {
    clearTimeout(timer)
    controller.abort()
  }
}
