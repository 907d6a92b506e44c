import { ServiceError, withinTimeLimit } from '@countersign/protocol'
import { boolean, object, optional, read, type Schema, string } from '@countersign/protocol/schema'
import { createError } from './errors.ts'

/** Longer than the service needs to sign, even when it waits for an entropy source. */
export const REQUEST_TIMEOUT_MS = 30_000

export type RequestOptions = {
  /** What stands behind the path; undefined members are left out. */
  query?: Readonly<Record<string, string | number | undefined>>
  /** Sent as JSON. */
  body?: unknown
  signal?: AbortSignal | undefined
  /** Whether cookies go along: to the service (`include`, the default), or to the page's own host alone, for what anybody may read. */
  credentials?: 'include' | 'same-origin'
}

export type RequestParameters<R> = RequestOptions & {
  method: 'GET' | 'POST'
  path: string
  /** Of the body of a success. */
  schema: Schema<R>
}

/** One call of the service. Whatever comes back, the promise gives `R` or rejects with a `ServiceError`. */
export async function request<R>(apiBaseUrl: string, parameters: RequestParameters<R>): Promise<R> {
  const { method, path, query, body, schema, signal, credentials = 'include' } = parameters
  const call = `${method} ${path}`
  const content = toJson(body)
  const ask = async (stop: AbortSignal) => {
    // Looked up at each call: an app that replaces the global later replaces it here too.
    const response = await globalThis.fetch(apiBaseUrl + path + toQuery(query), {
      method,
      credentials,
      headers: { accept: 'application/json', ...(content && { 'content-type': 'application/json' }) },
      signal: stop,
      body: content ?? null,
    })
    return { response, text: await response.text() }
  }
  const createTimeout = () =>
    createError('request_timeout', 'the service did not answer in time', {
      details: call,
      retryable: true,
    })
  const { response, text } = await withinTimeLimit(REQUEST_TIMEOUT_MS, ask, {
    createError: createTimeout,
    signal,
  }).catch((cause: unknown) => {
    // The caller's own abort is no failure of ours, and callers know it by its reason.
    signal?.throwIfAborted()
    if (cause instanceof ServiceError) throw cause
    throw createError('network_unreachable', 'the service cannot be reached', {
      details: `${call}: no answer, or blocked by CORS`,
      cause,
      retryable: true,
    })
  })
  const { ok, status } = response
  const value = parseText(text)
  try {
    if (ok) return read(schema, value)
    const { code, title = code, detail: details, retryable } = read(problem, value)
    throw new ServiceError<string>(code, title, { status, details, retryable })
  } catch (error) {
    if (error instanceof ServiceError) throw error
    throw createError('response_invalid', 'invalid service response', {
      status,
      details: `${call} answered ${status}`,
    })
  }
}

/** A failure with the service's own code. */
const problem = object({
  code: string(/^[a-z][a-z0-9_]{0,63}$/),
  title: optional(string()),
  detail: optional(string()),
  retryable: optional(boolean),
})

/** JSON leaves out the members that are undefined. */
function toQuery(query: RequestOptions['query']): string {
  const text = String(new URLSearchParams(JSON.parse(toJson(query) ?? '{}')))
  return text && `?${text}`
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw createError('invalid_request', 'the request is not JSON', { cause })
  }
}

/** Undefined for what is not JSON, as from a proxy. */
function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
