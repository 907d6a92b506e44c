/** How the verification reaches the network: a few bytes from a server that nobody trusts. */
export type FetchBytes = (parameters: FetchBytesParameters) => Promise<Uint8Array<ArrayBuffer>>

export type FetchBytesParameters = {
  url: string
  maxBytes: number
  accept: string
  /** Sends a POST with this JSON text; otherwise a GET. */
  body?: string
}

/** Why bytes could not be had, in a phrase that begins with the host. */
export class FetchError extends Error {
  override name = 'FetchError'
  /** Of the HTTP answer, where there was one. */
  readonly status: number | undefined
  constructor(message: string, { status, cause }: { status?: number; cause?: unknown } = {}) {
    super(message, { cause })
    this.status = status
  }
}

const TIMEOUT_MS = 30_000

/**
 * Without credentials, within a time limit, and reading stops at the bound. Errors name the host alone, since the path of a
 * node's URL is often a secret.
 */
export async function fetchBytes(parameters: FetchBytesParameters): Promise<Uint8Array<ArrayBuffer>> {
  const { host } = new URL(parameters.url)
  try {
    const response = await request(parameters)
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new FetchError(`${host} answers ${response.status}`, response)
    }
    if (/^text\/html\b/i.test(response.headers.get('content-type') ?? '')) {
      await response.body?.cancel()
      throw new FetchError(`${host} answers with a web page instead of data`, response)
    }
    return await readBounded(response, { host, maxBytes: parameters.maxBytes })
  } catch (error) {
    if (error instanceof FetchError) throw error
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    const reason = isLate
      ? `did not finish within ${TIMEOUT_MS / 1000} s`
      : 'could not be reached, broke off, or does not let this page ask (CORS)'
    throw new FetchError(`${host} ${reason}`, { cause: error })
  }
}

function request({ url, accept, body }: FetchBytesParameters): Promise<Response> {
  return globalThis.fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { accept, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body }),
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
}

async function readBounded(response: Response, { host, maxBytes }: { host: string; maxBytes: number }) {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  const reader = response.body?.getReader()
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) break
    length += value.length
    if (length > maxBytes) {
      await reader?.cancel()
      throw new FetchError(`${host} sends more than ${maxBytes} bytes`)
    }
    chunks.push(value)
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
