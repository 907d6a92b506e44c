export { ServiceError, type WebhookData, type WebhookEvent, type WebhookType } from '@countersign/protocol'
export type { WebhookErrorCode } from './errors.ts'
export { type VerifyWebhookParameters, verifyWebhook } from './verifyWebhook.ts'
