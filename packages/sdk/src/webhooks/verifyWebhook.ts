import {
  isPlainObject,
  parseWebhookKey,
  ServiceError,
  type ServiceErrorOptions,
  toWebhookMessage,
  verifyEd25519,
  type WebhookEvent,
} from '@countersign/protocol'

export { ServiceError, type WebhookData, type WebhookEvent, type WebhookType } from '@countersign/protocol'

/** Why a webhook is not to be believed, or not to be acted on again. */
export type WebhookErrorCode =
  /** Fix the call: no key, or one that is not `whpk_` and base64. */
  | 'webhook_keys_invalid'
  /** Refuse it (400): a header is missing, or header or body is not in its form. */
  | 'webhook_malformed'
  /** Refuse it (400): it is older or newer than the tolerance. Check your clock if this happens to all. */
  | 'webhook_expired'
  /** Refuse it (400): no key of yours signed this id, time and body. */
  | 'webhook_forged'
  /** Answer 200 and do nothing: you have acted on this id before. */
  | 'webhook_replayed'

function createError(code: WebhookErrorCode, message: string, options?: ServiceErrorOptions) {
  return new ServiceError<WebhookErrorCode>(code, message, options)
}

export type VerifyWebhookParameters = {
  /** Of the request: `Headers`, or as Node has them. */
  headers: Pick<Headers, 'get'> | Readonly<Record<string, string | readonly string[] | undefined>>
  /** Exactly as it came. Bytes that were parsed and written again have another signature. */
  body: Uint8Array | string
  /** Those you trust, `whpk_…`, from `GET /health/attestation`. Never those that came with the request. */
  keys: readonly string[]
  /** Whether you have acted on this id before. Write ids down with what you did, in one transaction; keep them for 30 days. */
  seen?: (id: string) => boolean | Promise<boolean>
  /** How far the time of the webhook may be from yours (300). */
  toleranceS?: number
  /** Milliseconds since 1970; your clock by default. */
  now?: number
}

/** No event of the service comes near it. */
const MAX_BODY_BYTES = 65_536
/** Of the service it has at most as many as there are keys. Each costs a stranger nothing, and the receiver a check with each of its keys. */
const MAX_SIGNATURES = 4
/** With those of other schemes. */
const MAX_PARTS = 16

/**
 * Judges a webhook, and gives what it says. Throws a `ServiceError` with a `WebhookErrorCode`.
 *
 * @example
 * const event = await verifyWebhook({ headers: request.headers, body: await request.text(), keys: [process.env.WEBHOOK_KEY] })
 * if (event.type === 'proof.complete') console.log(event.data.slug)
 */
export async function verifyWebhook(parameters: VerifyWebhookParameters): Promise<WebhookEvent> {
  const { headers, keys: texts, seen, toleranceS = 300, now = Date.now() } = parameters
  const keys = texts.map(parseWebhookKey).filter((key) => key !== undefined)
  if (keys.length === 0 || keys.length !== texts.length) {
    throw createError('webhook_keys_invalid', 'the keys are not whpk_ and base64')
  }
  const body = typeof parameters.body === 'string' ? new TextEncoder().encode(parameters.body) : parameters.body
  if (body.length > MAX_BODY_BYTES) throw malformed('the body is too long')
  const id = readHeader(headers, 'webhook-id')
  // A full stop in it could move the border between what is signed.
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) throw malformed('webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  if (!/^[1-9]\d{0,11}$/.test(timestamp)) throw malformed('webhook-timestamp')
  const isNear = Math.abs(now / 1000 - Number(timestamp)) <= toleranceS
  if (!isNear) throw createError('webhook_expired', 'the webhook is too old, or from the future')
  const signatures = readSignatures(readHeader(headers, 'webhook-signature'))
  const message = toWebhookMessage({ id, timestamp: Number(timestamp), body })
  const isSigned = signatures.some((signature) => keys.some((key) => verifyEd25519(key, signature, message)))
  if (!isSigned) throw createError('webhook_forged', 'no trusted key signed this webhook')
  const event = parseEvent(body, id)
  if (await seen?.(id)) throw createError('webhook_replayed', 'this webhook came before')
  return event
}

/** Node joins what came twice by a comma, or gives a list: both are refused by the form of a header. */
function readHeader(headers: VerifyWebhookParameters['headers'], name: string): string {
  const value =
    typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string') throw malformed(name)
  return value
}

/** Those of other schemes are left out: a service may add one. */
function readSignatures(text: string): Uint8Array[] {
  const parts = text.split(' ', MAX_PARTS + 1)
  const signatures = parts.flatMap((part) => {
    const [, base64] = /^v1a,([A-Za-z0-9+/]{86}==)$/.exec(part) ?? []
    return base64 === undefined ? [] : [Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))]
  })
  if (parts.length > MAX_PARTS || signatures.length > MAX_SIGNATURES) throw malformed('webhook-signature')
  return signatures
}

/** It is signed, so its form is only looked at to be sure of what the types promise. Types of later versions come through. */
function parseEvent(body: Uint8Array, id: string): WebhookEvent {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw malformed('the body is not JSON')
  }
  const isEvent =
    isPlainObject(value) &&
    value.id === id &&
    typeof value.type === 'string' &&
    typeof value.timestamp === 'string' &&
    isPlainObject(value.data)
  if (!isEvent) throw malformed('the body is no event of this id')
  return value as WebhookEvent
}

function malformed(details: string) {
  return createError('webhook_malformed', 'this is no webhook of the service', { details })
}
