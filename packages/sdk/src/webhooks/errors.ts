import { ServiceError, type ServiceErrorOptions } from '@countersign/protocol'

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

export function createError(code: WebhookErrorCode, message: string, options?: ServiceErrorOptions) {
  return new ServiceError<WebhookErrorCode>(code, message, options)
}
