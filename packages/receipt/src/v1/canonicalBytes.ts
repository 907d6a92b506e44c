import { createCodec } from '../canonicalCodec.ts'
import { type AttestationReceiptV1, RECEIPT_VERSION, receiptSchema } from './schema.ts'

const codec = createCodec<AttestationReceiptV1>({
  version: RECEIPT_VERSION,
  title: 'receipt of version 1',
  schema: receiptSchema,
})

/** The bytes of a receipt: RFC 8785 JSON, at most 256 KiB. These are what is pinned, and what its CID names. */
export function canonicalBytes(receipt: AttestationReceiptV1): Uint8Array<ArrayBuffer> {
  return codec.encode(receipt)
}

/** Reads a receipt of version 1 from its canonical bytes; every other spelling is refused. */
export function parseReceipt(bytes: Uint8Array): AttestationReceiptV1 {
  return codec.parse(bytes)
}
