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

/** Why `verifyWebhook` rejected a webhook. */
export type WebhookErrorCode =
  /** Pass at least one key, each `whpk_` and base64. */
  | 'webhook_keys_invalid'
  /** Answer 400: a header is missing, or a header or the body is malformed. */
  | 'webhook_malformed'
  /** Answer 400: its time is outside the tolerance. If this happens to every webhook, check your clock. */
  | 'webhook_expired'
  /** Answer 400: none of your keys signed this id, time and body. */
  | 'webhook_forged'
  /** Answer 2xx and do nothing: you have handled this id before. */
  | 'webhook_replayed'

function createError(code: WebhookErrorCode, message: string, options?: ServiceErrorOptions) {
  return new ServiceError<WebhookErrorCode>(code, message, options)
}

export type VerifyWebhookParameters = {
  /** The request's headers, as `Headers` or as Node's object. */
  headers: Pick<Headers, 'get'> | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The body exactly as received, not parsed and serialized again. */
  body: Uint8Array | string
  /** Your trusted keys (`whpk_…`), from `GET /health/attestation`. Never from the request. */
  keys: readonly string[]
  /** Whether you have handled this id before. Store ids in the transaction in which you act, for at least 30 days. */
  seen?: (id: string) => boolean | Promise<boolean>
  /** How far the webhook's time may differ from yours. Defaults to 300. */
  toleranceS?: number
  /** Milliseconds since 1970. Defaults to the system's clock. */
  now?: number
}

/** Far longer than any event of the service. */
const MAX_BODY_BYTES = 65_536
/** The service sends one signature per key, at most four. Each signature costs the receiver a check with each of its keys. */
const MAX_SIGNATURES = 4
/** Including signatures of other schemes. */
const MAX_PARTS = 16

/**
 * Verifies a webhook and returns its event. Throws a `ServiceError` with a `WebhookErrorCode`.
 *
 * @example
 * const event = await verifyWebhook({ headers: request.headers, body: await request.text(), keys: [process.env.WEBHOOK_KEY] })
 * if (event.type === 'proof.complete') console.log(event.data.slug)
 */
export async function verifyWebhook(parameters: VerifyWebhookParameters): Promise<WebhookEvent> {
  const { headers, keys: texts, seen, toleranceS = 300, now = Date.now() } = parameters
  const keys = texts.map(parseWebhookKey).filter((key) => key !== undefined)
  if (keys.length === 0 || keys.length !== texts.length) {
    throw createError('webhook_keys_invalid', 'invalid keys: expected whpk_ and base64')
  }
  const body = typeof parameters.body === 'string' ? new TextEncoder().encode(parameters.body) : parameters.body
  if (body.length > MAX_BODY_BYTES) throw malformed('the body is too long')
  const id = readHeader(headers, 'webhook-id')
  // A full stop in the id could shift the boundaries of the signed fields.
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) throw malformed('webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  if (!/^[1-9]\d{0,11}$/.test(timestamp)) throw malformed('webhook-timestamp')
  const isNear = Math.abs(now / 1000 - Number(timestamp)) <= toleranceS
  if (!isNear) throw createError('webhook_expired', 'the webhook’s time is outside the tolerance')
  const signatures = readSignatures(readHeader(headers, 'webhook-signature'))
  const message = toWebhookMessage({ id, timestamp: Number(timestamp), body })
  const isSigned = signatures.some((signature) => keys.some((key) => verifyEd25519(key, signature, message)))
  if (!isSigned) throw createError('webhook_forged', 'no trusted key signed this webhook')
  const event = parseEvent(body, id)
  if (await seen?.(id)) throw createError('webhook_replayed', 'this webhook was handled before')
  return event
}

/** Node joins repeated headers with a comma, or returns a list. The callers' patterns reject both. */
function readHeader(headers: VerifyWebhookParameters['headers'], name: string): string {
  const value =
    typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string') throw malformed(name)
  return value
}

/** Ignores signatures of other schemes, which a later version may add. */
function readSignatures(text: string): Uint8Array[] {
  const parts = text.split(' ', MAX_PARTS + 1)
  const signatures = parts.flatMap((part) => {
    const [, base64] = /^v1a,([A-Za-z0-9+/]{86}==)$/.exec(part) ?? []
    return base64 === undefined ? [] : [Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))]
  })
  if (parts.length > MAX_PARTS || signatures.length > MAX_SIGNATURES) throw malformed('webhook-signature')
  return signatures
}

/** The body is signed, so this checks only what the types promise. Accepts event types of later versions. */
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
  if (!isEvent) throw malformed('the body has no event with this id')
  return value as WebhookEvent
}

function malformed(details: string) {
  return createError('webhook_malformed', 'malformed webhook', { details })
}
