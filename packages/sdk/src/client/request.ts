import { ServiceError, withinTimeLimit } from '@countersign/protocol'
import { createError } from './errors.ts'
import { isObject, type Parse } from './parseResources.ts'

/** Longer than the service needs to sign, even when it waits for an entropy source. */
export const REQUEST_TIMEOUT_MS = 30_000

export type RequestOptions = {
  signal?: AbortSignal | undefined
  /** Needs no session: asked without the cookie, so that any origin may ask. */
  isPublic?: boolean
}

export type RequestParameters<R> = RequestOptions & {
  method: 'GET' | 'POST'
  path: string
  body?: unknown
  /** Of the body of a success. */
  parse: Parse<R>
}

/** One call of the service. Whatever comes back, the promise gives `R` or rejects with a `ServiceError`. */
export async function request<R>(apiBaseUrl: string, parameters: RequestParameters<R>): Promise<R> {
  const { method, path, parse } = parameters
  const { status, isOk, text } = await ask(apiBaseUrl, parameters)
  const body = parseJson(text)
  const value = isOk ? parse(body) : undefined
  if (value !== undefined) return value
  throw (isOk ? undefined : toProblem(body, status)) ?? invalidResponse(status, `${method} ${path}`)
}

async function ask(apiBaseUrl: string, { method, path, body, signal, isPublic }: RequestParameters<unknown>) {
  const content = toJson(body)
  const call = async (stop: AbortSignal) => {
    // Looked up at each call: an app that replaces the global later replaces it here too.
    const response = await globalThis.fetch(`${apiBaseUrl}${path}`, {
      method,
      credentials: isPublic ? 'omit' : 'include',
      headers: { accept: 'application/json', ...(content && { 'content-type': 'application/json' }) },
      signal: stop,
      body: content ?? null,
    })
    return { status: response.status, isOk: response.ok, text: await response.text() }
  }
  try {
    return await withinTimeLimit(REQUEST_TIMEOUT_MS, call, { createError: () => timedOut(method, path), signal })
  } catch (cause) {
    // The caller's own abort is no failure of ours, and callers know it by its reason.
    signal?.throwIfAborted()
    if (cause instanceof ServiceError) throw cause
    throw createError('network_unreachable', 'the service cannot be reached', {
      details: `${method} ${path}: no answer, or one that the browser withheld (CORS)`,
      cause,
      retryable: true,
    })
  }
}

/** A problem+json body as an error with the service's own code; undefined for what is no problem of ours. */
function toProblem(body: unknown, status: number) {
  if (!isObject(body) || typeof body.code !== 'string' || !/^[a-z][a-z0-9_]{0,63}$/.test(body.code)) {
    return undefined
  }
  const { code, title, detail, retryable } = body
  return new ServiceError<string>(code, typeof title === 'string' ? title : code, {
    status,
    details: typeof detail === 'string' ? detail : undefined,
    retryable: typeof retryable === 'boolean' ? retryable : undefined,
  })
}

function toJson(body: unknown): string | undefined {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    throw createError('invalid_request', 'the request is not JSON', { cause })
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function timedOut(method: string, path: string) {
  const details = `${method} ${path}: no answer within ${REQUEST_TIMEOUT_MS / 1000} s`
  return createError('request_timeout', 'the service did not answer in time', { details, retryable: true })
}

function invalidResponse(status: number, call: string) {
  const details = `${call} answered ${status} with something else than this service does`
  return createError('response_invalid', 'the answer is not one of this service', { status, details })
}
