import { type Hex, ServiceError, withinTimeLimit } from '@countersign/protocol'
import { boolean, object, optional, read, type Schema, string } from '@countersign/protocol/schema'
import { createError } from './errors.ts'

/** Longer than the service needs to sign, even if it waits for entropy. */
export const REQUEST_TIMEOUT_MS = 30_000

export type RequestOptions = {
  /** Omits undefined members. */
  query?: Readonly<Record<string, string | number | undefined>>
  /** Sent as JSON. */
  body?: unknown
  /** The digest that off-chain content has, for the stamp of a session with a key. */
  digest?: Hex | undefined
  /** The wallet that is to sign, for the same stamp. */
  signer?: Hex | undefined
  signal?: AbortSignal | undefined
  /** `same-origin` for public data, which needs no cookie, and `omit` in sessions without one. Defaults to `include`. */
  credentials?: 'include' | 'omit' | 'same-origin'
}

export type RequestParameters<R> = RequestOptions & {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string> | undefined
  /** Of a successful response's body. */
  schema: Schema<R>
}

type Service = { readonly apiBaseUrl: string }

/** A session with a browser key. Create one with `@countersign/sdk/session` or `@countersign/sdk/direct`. */
export type Session = {
  /** Called before each request to the service. The result replaces members of the request. */
  prepare(service: Service, request: RequestParameters<unknown>): Promise<Partial<RequestParameters<unknown>>>
  /** Creates the key of a sign-in, and returns the address that starts it. `url` starts one without a key. */
  startLogin(service: Service, url: string): Promise<string>
}

/** The service, and the session of its requests. */
export type ServiceAddress = Service & { session?: Session | undefined }

/** Calls the service. Resolves with `R` or rejects with a `ServiceError`. */
export async function request<R>(service: ServiceAddress, parameters: RequestParameters<R>): Promise<R> {
  const { method, path, query, schema, signal } = parameters
  const prepared = service.session && (await service.session.prepare(service, parameters))
  const { body, headers, credentials } = { ...parameters, ...prepared }
  const call = `${method} ${path}`
  const content = toJson(body)
  const ask = async (stop: AbortSignal) => {
    // Read at each call, because an app may replace the global later.
    const response = await globalThis.fetch(service.apiBaseUrl + path + toQuery(query), {
      method,
      credentials: credentials ?? 'include',
      headers: { accept: 'application/json', ...(content && { 'content-type': 'application/json' }), ...headers },
      signal: stop,
      body: content ?? null,
    })
    return { response, text: await response.text() }
  }
  const { response, text } = await withinTimeLimit(REQUEST_TIMEOUT_MS, ask, {
    createError: () =>
      createError('request_timeout', 'the service did not answer in time', { details: call, retryable: true }),
    signal,
  }).catch((cause: unknown) => {
    // The caller's abort rejects with the caller's reason.
    signal?.throwIfAborted()
    if (cause instanceof ServiceError) throw cause
    throw createError('network_unreachable', 'cannot reach the service', {
      details: `${call}: no answer or CORS`,
      cause,
      retryable: true,
    })
  })
  const { ok, status } = response
  const value = parseText(text)
  try {
    if (ok) return read(schema, value)
    const { code, title = code, detail: details, ...rest } = read(problem, value)
    throw Object.assign(new ServiceError<string>(code, title, { status, details }), rest)
  } catch (error) {
    if (error instanceof ServiceError) throw error
    throw createError('response_invalid', 'invalid response', {
      status,
      details: `${call} answered ${status}`,
    })
  }
}

const problem = object({
  code: string(/^[a-z][a-z0-9_]{0,63}$/),
  title: optional(string()),
  detail: optional(string()),
  retryable: optional(boolean),
  left: optional(string()),
})

/** JSON omits undefined members. */
function toQuery(query: RequestOptions['query']): string {
  const text = String(new URLSearchParams(JSON.parse(toJson(query) ?? '{}')))
  return text && `?${text}`
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw createError('invalid_request', 'not JSON', { cause })
  }
}

/** Undefined if it is not JSON, as from a proxy. */
function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
