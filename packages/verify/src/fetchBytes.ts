import { VerifierError } from './errors.ts'

/** How the network is reached. */
export type FetchDeps = { fetch: typeof globalThis.fetch; timeoutMs: number }

export type FetchBytesParameters = {
  url: URL
  maxBytes: number
  accept: string
  /** Sends a POST with this JSON text; otherwise a GET. */
  body?: string
}

const MAX_REDIRECTS = 3

/**
 * Fetches a few bytes from a server that nobody trusts: no credentials, at most three redirects, never from https down to
 * http, one time limit for everything, and reading stops at the bound. Errors name the host alone, since the path of a node's URL is often a
 * secret.
 */
export async function fetchBytes(deps: FetchDeps, parameters: FetchBytesParameters): Promise<Uint8Array<ArrayBuffer>> {
  const signal = AbortSignal.timeout(deps.timeoutMs)
  let { url } = parameters
  try {
    for (let redirects = 0; ; redirects++) {
      const response = await request(deps, { ...parameters, url, signal })
      if (response.status < 300 || response.status >= 400) return await readBody(response, parameters)
      await response.body?.cancel()
      if (parameters.body !== undefined) throw failed(parameters.url, 'redirects a POST')
      if (redirects === MAX_REDIRECTS) throw failed(parameters.url, `redirects more than ${MAX_REDIRECTS} times`)
      url = toRedirectTarget(response, { from: url, first: parameters.url })
    }
  } catch (error) {
    throw error instanceof VerifierError ? error : failed(parameters.url, describe(error, deps), error)
  }
}

function request({ fetch }: FetchDeps, { url, accept, body, signal }: FetchBytesParameters & { signal: AbortSignal }) {
  return fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept,
      // Compressed bytes would have to be unpacked before their bound is known.
      'accept-encoding': 'identity',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    signal,
  })
}

function toRedirectTarget(response: Response, { from, first }: { from: URL; first: URL }): URL {
  const location = response.headers.get('location')
  const target = location !== null && URL.canParse(location, from.href) ? new URL(location, from) : undefined
  if (target === undefined) throw failed(first, `answers ${response.status} without a usable location`)
  if (target.protocol !== 'https:' && target.protocol !== 'http:') throw failed(first, 'redirects to another protocol')
  if (from.protocol === 'https:' && target.protocol === 'http:') throw failed(first, 'redirects from https to http')
  if (target.username !== '' || target.password !== '') throw failed(first, 'redirects with credentials')
  return target
}

async function readBody(response: Response, { url, maxBytes }: FetchBytesParameters): Promise<Uint8Array<ArrayBuffer>> {
  const { body } = response
  if (response.status !== 200) {
    await body?.cancel()
    throw failed(url, `answers ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    // Leaving the loop cancels the stream and closes the connection.
    if (length > maxBytes) throw failed(url, `sends more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}

function describe(error: unknown, { timeoutMs }: FetchDeps): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `did not finish within ${timeoutMs / 1000} s`
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  if (code === 'UND_ERR_SOCKET' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'closed the connection early'
  return `could not be reached${code === undefined ? '' : ` (${code})`}`
}

function failed(url: URL, what: string, cause?: unknown) {
  return new VerifierError('fetch_failed', 'could not fetch', { details: `${url.host} ${what}`, cause })
}
