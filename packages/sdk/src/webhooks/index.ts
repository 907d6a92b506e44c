export { ServiceError, type WebhookData, type WebhookEvent, type WebhookType } from '@countersign/protocol'
export { type VerifyWebhookParameters, verifyWebhook, type WebhookErrorCode } from './verifyWebhook.ts'
