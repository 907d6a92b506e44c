import type { ErrorCode } from './errorCodes.ts'
import { type Endpoint, type EndpointRequest, type Endpoints, endpoints } from './http.ts'
import { isPlainObject } from './plainObject.ts'
import { isOf, parse, type Schema } from './schema.ts'

type Call = { [Name in Endpoint]: Endpoints[Name] extends { request: Schema } ? Name : never }[Endpoint]

const invalid = 'invalid_typed_data'
const content = { domain: invalid, types: invalid, primaryType: invalid, message: invalid } as const
const transaction = { digest: 'invalid_digest', txMetadata: 'invalid_tx_metadata' } as const
/** Error codes other than `invalid_request`, by the full details from `parse` or by the member that they begin with. */
const codes: { [Name in Call]?: Readonly<Record<string, ErrorCode>> } = {
  // The schema only requires an object. `@countersign/policy` checks its members.
  'POST /vaults': { 'policy is not valid': 'invalid_policy' },
  'POST /sign/digest': transaction,
  'POST /vaults/:address/sign': { ...transaction, ...content },
  'POST /sign/message': { 'message is not valid': 'invalid_message' },
  'POST /sign/typed-data': { it: invalid, ...content },
}

/**
 * Parses the body of a call. `fail` creates the error to throw.
 *
 * @example
 * const { policy, address } = parseRequest('POST /vaults', body, fail)
 */
export function parseRequest<Name extends Call>(
  name: Name,
  body: unknown,
  fail: (code: ErrorCode, details: string) => Error,
): EndpointRequest<Name> {
  const schema = endpoints[name].request as Schema
  const kind = (body as { kind?: unknown } | null)?.kind
  const ofKind = schema.options?.find(({ members }) => isOf(members?.kind as Schema, kind))
  return parse((ofKind ?? schema) as Schema<EndpointRequest<Name>>, body, (details) => {
    const [member = ''] = details.split(/\W/)
    const code = codes[name]?.[details] ?? codes[name]?.[member] ?? 'invalid_request'
    const unsupported = code === 'invalid_tx_metadata' ? findUnsupported(body) : undefined
    return unsupported === undefined ? fail(code, details) : fail('unsupported_transaction', unsupported)
  })
}

/** The reason, if the metadata describe an unsupported kind of transaction. The caller can't fix that in the request. */
function findUnsupported(body: unknown): string | undefined {
  const { txMetadata } = body as { txMetadata?: unknown }
  if (!isPlainObject(txMetadata)) return undefined
  const { type, accessList, to } = txMetadata
  const isTyped = typeof type === 'string' || typeof type === 'number'
  if (isTyped && type !== 'eip1559' && type !== 2 && type !== '0x2') return 'type is not EIP-1559'
  for (const name of ['gasPrice', 'blobVersionedHashes', 'authorizationList']) {
    if ((txMetadata[name] ?? null) !== null) return `${name} belongs to another type of transaction`
  }
  if (Array.isArray(accessList) && accessList.length > 0) return 'accessList is not empty'
  return to === null ? 'to is null' : undefined
}
