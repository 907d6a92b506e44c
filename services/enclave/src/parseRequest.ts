import { MAX_POLICY_BYTES } from '@countersign/policy/core'
import { parseJson, type SignItem, signItems, signItemsRequest } from '@countersign/protocol/core'
import { isOf, parse, type Schema } from '@countersign/protocol/schema'
import { EnclaveError } from './errors.ts'

/** Parses the JSON body of a call. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return parseJson(body)
  } catch {
    throw new EnclaveError('invalid_json', 'the body is not JSON')
  }
}

export function parseRequest<Request>(schema: Schema<Request>, value: unknown): Request {
  return parse(schema, value, invalidRequest)
}

/** Items of the wrong shape are undefined, so that one of them doesn't fail the others. */
export type ParsedSignItems = { items: (SignItem | undefined)[]; policies?: readonly string[] | undefined }

export function parseSignItemsRequest(value: unknown): ParsedSignItems {
  const { items, policies } = parseRequest(signItemsRequest, value)
  if (policies?.some((text) => Buffer.byteLength(text) > MAX_POLICY_BYTES)) throw invalidRequest('a policy is too long')
  return { items: items.map(toSignItem), policies }
}

/** Item, content, and typed data nested 16 deep. */
const MAX_ITEM_DEPTH = 24

/** The signed content is validated, with separate errors, where it is rebuilt. */
function toSignItem(value: unknown): SignItem | undefined {
  const kind = (value as { kind?: unknown } | null)?.kind
  const isKnown = typeof kind === 'string' && Object.hasOwn(signItems, kind) && isWithinDepth(value, MAX_ITEM_DEPTH)
  return isKnown && isOf<SignItem>(signItems[kind as SignItem['kind']], value) ? value : undefined
}

/** Messages to the key worker are copied recursively, so a value nested thousands deep would crash the process. */
function isWithinDepth(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth === 0) return false
  // Parsed JSON inherits nothing that this loop would visit.
  for (const name in value) if (!isWithinDepth(value[name as keyof typeof value], depth - 1)) return false
  return true
}

function invalidRequest(details: string): EnclaveError {
  return new EnclaveError('invalid_request', 'invalid request', { details })
}
