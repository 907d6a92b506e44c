import { ServiceError } from '@countersign/protocol'
import { createError } from './errors.ts'
import { isObject } from './parseResources.ts'
import { withTimeLimit } from './withTimeLimit.ts'

/** Longer than the service needs to sign, even when it waits for an entropy source. */
export const REQUEST_TIMEOUT_MS = 30_000

export type RequestParameters<R> = {
  method: 'GET' | 'POST'
  path: string
  body?: unknown
  /** Narrows the body of a success, or gives undefined for one that is not of the expected shape. */
  parse: (body: unknown) => R | undefined
  signal?: AbortSignal | undefined
  /** Needs no session: asked without the cookie, so that any origin may ask. */
  isPublic?: boolean
}

/** One call of the service. Whatever comes back, the promise gives `R` or rejects with a `ServiceError`. */
export async function request<R>(apiBaseUrl: string, parameters: RequestParameters<R>): Promise<R> {
  const { method, path, parse } = parameters
  const { status, isOk, text } = await ask(apiBaseUrl, parameters)
  const body = parseJson(text)
  if (!isOk) throw toFailure(body, { status, call: `${method} ${path}` })
  const value = parse(body)
  if (value === undefined) throw invalidResponse(status, `${method} ${path} answered something else than expected`)
  return value
}

async function ask(apiBaseUrl: string, { method, path, body, signal, isPublic }: RequestParameters<unknown>) {
  signal?.throwIfAborted()
  const timeout = { limitMs: REQUEST_TIMEOUT_MS, createError: () => timedOut(method, path) }
  try {
    return await withTimeLimit(timeout, async (timeLimit) => {
      // Looked up at each call: whoever replaces the global later replaces it here too.
      const response = await globalThis.fetch(`${apiBaseUrl}${path}`, {
        method,
        credentials: isPublic ? 'omit' : 'include',
        headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        signal: signal ? AbortSignal.any([signal, timeLimit]) : timeLimit,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, isOk: response.ok, text: await response.text() }
    })
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

/** A problem+json body as an error with the service's own code. What is no problem of ours tells its status alone. */
function toFailure(body: unknown, { status, call }: { status: number; call: string }) {
  if (!isObject(body) || typeof body.code !== 'string' || !/^[a-z][a-z0-9_]{0,63}$/.test(body.code)) {
    return invalidResponse(status, `${call} answered ${status} without a problem of this service`)
  }
  const { code, title, detail, retryable } = body
  return new ServiceError<string>(code, typeof title === 'string' ? title : code, {
    status,
    details: typeof detail === 'string' ? detail : undefined,
    retryable: typeof retryable === 'boolean' ? retryable : undefined,
  })
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

function invalidResponse(status: number, details: string) {
  return createError('response_invalid', 'the answer is not one of this service', { status, details })
}
