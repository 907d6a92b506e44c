import {
  hashAuthorization,
  hashMessage,
  hashTypedData,
  type MessageContent,
  type ProtocolErrorCode,
  parseAuthorization,
  readMembers,
  ServiceError,
  type TypedData,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { CoordinatorError, type CoordinatorErrorCode, invalidRequest } from '../errors.ts'
import type { SignContent } from '../sign/contents.ts'
import { assertChainAllowed, assertChainNamed, assertNoHash, type ChainLimits } from './assertChainAllowed.ts'

/*
 * The bodies of the calls that sign something else than a transaction. Each is hashed here as the enclave does, so that what it would
 * refuse costs no sample; no key, session or sample is touched before. Errors never repeat anything of a body.
 */

/** `POST /sign/message`. */
export function parseMessage(body: unknown, limits: ChainLimits): SignContent {
  const { message } = readMembers(body, { required: ['message'] }, invalidRequest)
  const content = { message } as MessageContent
  const digest = toHex(translated(() => hashMessage(content.message)))
  assertNoHash(content.message, limits)
  return { kind: 'message', content, digest: `0x${digest}` }
}

/** `POST /sign/typed-data`. A permit of another chain moves what is there: it is refused as a transaction of that chain is. */
export function parseTypedData(body: unknown, limits: ChainLimits): SignContent {
  const members = readMembers(body, { required: ['domain', 'types', 'primaryType', 'message'] }, invalidTypedData)
  const content = members as TypedData
  const digest = toHex(translated(() => hashTypedData(content)))
  // What was hashed is an integer in one of its spellings.
  const { chainId } = content.domain
  assertChainNamed(chainId === undefined ? undefined : BigInt(chainId as string | number), limits)
  return { kind: 'typed-data', content, digest: `0x${digest}` }
}

/** `POST /sign/authorization`. Which implementations are allowed is a setting of the enclave: `createBatchSigner` refuses the others. */
export function parseAuthorizationRequest(body: unknown, limits: ChainLimits): SignContent {
  const authorization = translated(() => parseAuthorization(body))
  if (authorization.chainId === 0) {
    const details = 'for every chain'
    throw new CoordinatorError('authorization_not_allowed', 'authorization not allowed', { details })
  }
  assertChainAllowed(BigInt(authorization.chainId), limits)
  return { kind: 'authorization', authorization, digest: toPrefixedHex(hashAuthorization(authorization)) }
}

const codes = ['invalid_request', 'invalid_message', 'invalid_typed_data', 'message_too_large'] as const

/** The protocol's own refusals under their own codes. */
function translated<Value>(parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const { code, message, details } = error as ServiceError<ProtocolErrorCode>
    const known: CoordinatorErrorCode | undefined = codes.find((one) => one === code)
    throw new CoordinatorError(known ?? 'invalid_request', message, { details })
  }
}

function invalidTypedData(details: string) {
  return new CoordinatorError('invalid_typed_data', 'invalid typed data', { details })
}
