import {
  type Authorization,
  type Hex,
  isNatural,
  isPlainObject,
  isPrefixedHex,
  type MessageContent,
  ServiceError,
  type TypedData,
} from '@countersign/protocol'
import { bytesToHex, hashMessage, hashTypedData, isAddress, stringToHex } from 'viem'
import { createError } from './errors.ts'

/** What `signMessage` takes: text, which is signed in UTF-8, or bytes. */
export type SignMessageRequest = { message: string | { raw: Hex | Uint8Array } }

/** What `signTypedData` takes: EIP-712 as viem has it. Integers may be bigints. */
export type SignTypedDataRequest = TypedData

/** What `signAuthorization` takes: the account runs the code of `address`, on the client's chain, if its nonce is this one. */
export type SignAuthorizationRequest = Omit<Authorization, 'chainId'> & {
  /** The client's chain: no other is signed for. */
  chainId?: number | undefined
}

/** What is to be signed off the chain, as it is sent, with the digest that the signature must be over. */
export type OffChain = { digest: Hex } & (
  | { kind: 'message'; content: MessageContent }
  | { kind: 'typed-data'; content: TypedData }
)

/** Half a surrogate pair: encoders replace it, so that another text would be signed than the one that was asked for. */
const LONE_SURROGATE = /\p{Cs}/u
/** EIP-712, "Definition of domainSeparator": these, in this order, those that a domain has. */
const DOMAIN_TYPES = [
  ['name', 'string'],
  ['version', 'string'],
  ['chainId', 'uint256'],
  ['verifyingContract', 'address'],
  ['salt', 'bytes32'],
] as const

/** Reads a message before anything is sent. */
export function parseMessage(request: SignMessageRequest): OffChain {
  const given: unknown = request?.message
  if (typeof given === 'string') {
    if (LONE_SURROGATE.test(given)) throw invalid('invalid_message', 'half a surrogate pair')
    return toMessage(stringToHex(given))
  }
  const raw: unknown = isPlainObject(given) && given.raw
  const message = raw instanceof Uint8Array ? bytesToHex(raw) : raw
  if (!isPrefixedHex(message)) throw invalid('invalid_message', 'expected text, or { raw: bytes or hex }')
  return toMessage(message.toLowerCase() as Hex)
}

/** Reads typed data before anything is sent. `chainId` is the client's: EIP-712 wants a domain of another chain refused. */
export function parseTypedData(request: SignTypedDataRequest, chainId: number): OffChain {
  try {
    const { domain, types, primaryType, message } = request
    // A copy: what the caller changes later is neither sent nor hashed.
    const content = toJson({ domain, types, primaryType, message }) as TypedData
    const members = DOMAIN_TYPES.filter(([name]) => Object.hasOwn(content.domain, name))
    const asked = content.domain.chainId as number | string | undefined
    if (asked !== undefined && BigInt(asked) !== BigInt(chainId)) {
      throw invalid('invalid_typed_data', `it is for chain ${asked}, the client is on ${chainId}`)
    }
    // By the members that are there, as the service does. viem would leave out a chain that is written as a string.
    const EIP712Domain = members.map(([name, type]) => ({ name, type }))
    const digest = hashTypedData({ ...content, types: { ...content.types, EIP712Domain } } as never)
    return { kind: 'typed-data', digest, content }
  } catch (cause) {
    // No details of viem's: it repeats values, and details go into logs.
    throw cause instanceof ServiceError ? cause : invalid('invalid_typed_data', 'it has no hash by EIP-712', cause)
  }
}

/** Reads an authorization before anything is sent. */
export function parseAuthorization(request: SignAuthorizationRequest, expected: number): Authorization {
  const { chainId = expected, address, nonce } = request ?? {}
  // Chain 0 would hold on every chain.
  if (chainId !== expected) throw invalid('invalid_request', `it is for chain ${chainId}, the client is on ${expected}`)
  if (typeof address !== 'string' || !isAddress(address, { strict: /[a-f]/.test(address) })) {
    throw invalid('invalid_request', '`address` is not an address')
  }
  if (!isNatural(nonce)) throw invalid('invalid_request', '`nonce` is not a natural number')
  return { chainId, address: address.toLowerCase() as Hex, nonce }
}

/**
 * A copy as JSON carries it, with bigints in decimal. Members that are undefined are left out, as everywhere in JSON; whatever
 * else JSON would drop, round or convert is refused, since the service would then sign something else.
 */
function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return Array.from(value, toJson)
  if (isPlainObject(value)) {
    const given = Object.entries(value).filter(([, member]) => member !== undefined)
    return Object.fromEntries(given.map(([name, member]) => [toJson(name), toJson(member)]))
  }
  const isText = typeof value === 'string' && !LONE_SURROGATE.test(value)
  if (isText || typeof value === 'boolean' || Number.isSafeInteger(value)) return value
  throw invalid('invalid_typed_data', `JSON would lose or change a ${typeof value}`)
}

function toMessage(message: Hex): OffChain {
  return { kind: 'message', digest: hashMessage({ raw: message }), content: { message } }
}

type Code = 'invalid_message' | 'invalid_request' | 'invalid_typed_data'

function invalid(code: Code, details: string, cause?: unknown): ServiceError {
  return createError(code, code.replaceAll('_', ' '), { details, cause })
}
