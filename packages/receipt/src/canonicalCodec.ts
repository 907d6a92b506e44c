import { MAX_BLOCK_BYTES, parseCanonicalJson, ServiceError, toCanonicalJson } from '@countersign/protocol'
import type { z } from 'zod'
import { ReceiptError } from './errors.ts'
import { type AttestationReceiptV1, RECEIPT_VERSION, receiptSchema } from './v1/schema.ts'

export type Codec<Value> = {
  /** The canonical bytes: RFC 8785 JSON, at most 256 KiB. They are pinned, and the CID is over them. */
  encode(value: Value): Uint8Array<ArrayBuffer>
  /** Parses canonical bytes. Rejects any other spelling. */
  parse(bytes: Uint8Array): Value
}

/** Converts between bytes and a value of one format. `title` is the format's display name: `receipt of version 1`. */
export function createCodec<Value>(version: string, title: string, schema: z.ZodType<Value, Value>): Codec<Value> {
  const assertValue = (value: unknown): Value => {
    const result = schema.safeParse(value)
    if (result.success) return result.data
    if (readVersion(value) !== version) throw new ReceiptError('receipt_version_unsupported', `not a ${title}`)
    const issue = findIssue(result.error.issues)
    throw new ReceiptError('receipt_malformed', 'malformed receipt', {
      details: `${issue?.path.join('.') || 'receipt'}: ${issue?.message ?? 'invalid'}`,
    })
  }
  return {
    encode(value) {
      const bytes = toCanonicalJson(assertValue(value))
      assertBlockSize(bytes)
      return bytes
    },
    parse(bytes) {
      return assertValue(parseJsonOf(bytes))
    },
  }
}

/** The first fault. For a union, the first fault of the member with the fewest, because zod itself only reports that none matches. */
function findIssue([issue]: readonly z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
  if (issue?.code !== 'invalid_union') return issue
  const inner = findIssue(issue.errors.toSorted((one, other) => one.length - other.length)[0] ?? [])
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] }
}

/** The format that canonical bytes claim. Undefined if they are not canonical JSON or name no format. */
export function peekVersion(bytes: Uint8Array): unknown {
  try {
    return readVersion(parseJsonOf(bytes))
  } catch {
    return undefined
  }
}

function parseJsonOf(bytes: Uint8Array): unknown {
  assertBlockSize(bytes)
  try {
    return parseCanonicalJson(bytes, { maxBytes: MAX_BLOCK_BYTES })
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    throw new ReceiptError('receipt_not_canonical', 'not a receipt in canonical form', {
      ...(cause.details === undefined ? {} : { details: cause.details }),
      cause,
    })
  }
}

/** Throws `receipt_too_large`. For blocks without a codec: collateral, and already encoded ones. */
export function assertBlockSize(bytes: Uint8Array): void {
  if (bytes.length > MAX_BLOCK_BYTES) throw new ReceiptError('receipt_too_large', 'receipt larger than 256 KiB')
}

function readVersion(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'version' in value ? value.version : undefined
}

const codec = createCodec<AttestationReceiptV1>(RECEIPT_VERSION, 'receipt of version 1', receiptSchema)

/** The bytes of a receipt: RFC 8785 JSON, at most 256 KiB. They are pinned, and the CID is over them. */
export function canonicalBytes(receipt: AttestationReceiptV1): Uint8Array<ArrayBuffer> {
  return codec.encode(receipt)
}

/** Parses a receipt of version 1 from its canonical bytes. Rejects any other spelling. */
export function parseReceipt(bytes: Uint8Array): AttestationReceiptV1 {
  return codec.parse(bytes)
}
