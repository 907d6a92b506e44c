export { ServiceError, type WebhookData, type WebhookEvent, type WebhookType } from '@countersign/protocol'
export type { WebhookErrorCode } from './verifyWebhook.ts'
export { type VerifyWebhookParameters, verifyWebhook } from './verifyWebhook.ts'
