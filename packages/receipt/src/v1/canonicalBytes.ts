import { parseCanonicalJson, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { ReceiptError } from '../errors.ts'
import { type AttestationReceiptV1, MAX_RECEIPT_BYTES, RECEIPT_VERSION, receiptSchema } from './schema.ts'

/** The bytes of a receipt: RFC 8785 JSON, at most 256 KiB. These are what is pinned, and what its CID names. */
export function canonicalBytes(receipt: AttestationReceiptV1): Uint8Array<ArrayBuffer> {
  const bytes = toCanonicalJson(assertReceipt(receipt))
  if (bytes.length > MAX_RECEIPT_BYTES) throw new ReceiptError('receipt_too_large', 'receipt larger than 256 KiB')
  return bytes
}

/** Reads a receipt from its canonical bytes; every other spelling is refused. */
export function parseReceipt(bytes: Uint8Array): AttestationReceiptV1 {
  if (bytes.length > MAX_RECEIPT_BYTES) throw new ReceiptError('receipt_too_large', 'receipt larger than 256 KiB')
  let value: unknown
  try {
    value = parseCanonicalJson(bytes, { maxBytes: MAX_RECEIPT_BYTES })
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    throw new ReceiptError('receipt_not_canonical', 'not a receipt in canonical form', {
      ...(cause.details === undefined ? {} : { details: cause.details }),
      cause,
    })
  }
  return assertReceipt(value)
}

function assertReceipt(value: unknown): AttestationReceiptV1 {
  const result = receiptSchema.safeParse(value)
  if (result.success) return result.data
  const version = typeof value === 'object' && value !== null && 'version' in value ? value.version : undefined
  if (version !== RECEIPT_VERSION) {
    throw new ReceiptError('receipt_version_unsupported', 'not a receipt of version 1')
  }
  const issue = result.error.issues[0]
  throw new ReceiptError('receipt_malformed', 'malformed receipt', {
    details: `${issue?.path.join('.') || 'receipt'}: ${issue?.message ?? 'invalid'}`,
  })
}
